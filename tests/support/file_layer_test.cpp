// sys/file.hpp over both kernels, and with every fault at every call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/fault_kernel.hpp"
#include "support/file_helpers.hpp"
#include "support/volatile_disk.hpp"
#include "sys/file.hpp"

namespace diapause::test_support {
namespace {

using sys::Access;
using sys::AlignedBuffer;
using sys::Directory;
using sys::File;
using sys::FileLock;
using testing::HasSubstr;
using testing::Not;

class FileLayer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    old_umask_ = ::umask(0);  // so that modes are what the tests ask for
    std::string pattern =
        (std::filesystem::temp_directory_path() / "diapause-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    real_path_ = pattern;
    root_path_ = GetParam() == "real" ? real_path_ : "/root";
    if (GetParam() == "volatile") kernel_ = &disk_;
    root_ = open(Directory::make_private(*kernel_, root_path_));
  }
  void TearDown() override {
    ::umask(old_umask_);
    std::filesystem::remove_all(real_path_);
  }

  template <class T>
  static T open(Result<T> result) {
    EXPECT_TRUE(result) << message_of(result);
    return result ? std::move(*result) : T();
  }

  VolatileDisk disk_;
  sys::Kernel* kernel_ = &sys::real_kernel();
  std::string real_path_;
  std::string root_path_;
  Directory root_;
  mode_t old_umask_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kernels, FileLayer, testing::Values("real", "volatile"),
                         [](const auto& instance) { return instance.param; });

TEST_P(FileLayer, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(write_text(root_, "a", "diapause"));
  EXPECT_EQ(read_text(root_, "a"), "diapause");
}

TEST_P(FileLayer, CreatingAnOldNameAnewLeavesNoOldTail) {
  ASSERT_TRUE(write_text(root_, "a", "a longer text"));
  ASSERT_TRUE(write_text(root_, "a", "short"));
  EXPECT_EQ(read_text(root_, "a"), "short");
}

TEST_P(FileLayer, SaysWhereAFileEndsTooSoon) {
  ASSERT_TRUE(write_text(root_, "a", "12345"));
  const File file = open(root_.open_file("a", Access::read));
  std::byte data[8];
  const Status status = file.read_exact(data, 1);
  EXPECT_EQ(code_of(status), Code::corrupt);
  EXPECT_THAT(message_of(status), HasSubstr(root_path_ + "/a ends at byte 5, before byte 9"));
  EXPECT_EQ(code_of(file.read_exact(data, 100)), Code::corrupt);
}

TEST_P(FileLayer, SaysWhereADirectlyReadFileEndsTooSoon) {
  ASSERT_TRUE(write_text(root_, "a", std::string(5000, 'a')));
  const File file = open(root_.open_file("a", Access::read, true));
  const AlignedBuffer buffer = open(AlignedBuffer::allocate(3 * kPageBytes));
  EXPECT_THAT(message_of(file.read_exact(buffer.bytes(), 0)), HasSubstr("ends at byte 5000"));
}

TEST_P(FileLayer, WritesAndReadsDirectly) {
  const File file = open(root_.create_file("a", true));
  const AlignedBuffer out = open(AlignedBuffer::allocate(4 * kPageBytes));
  std::fill(out.bytes().begin(), out.bytes().end(), std::byte{'d'});
  EXPECT_TRUE(file.write_all(out.bytes(), 0));
  const AlignedBuffer in = open(AlignedBuffer::allocate(4 * kPageBytes));
  EXPECT_TRUE(file.read_exact(in.bytes(), 0));
  EXPECT_TRUE(std::equal(in.bytes().begin(), in.bytes().end(), out.bytes().begin()));
}

TEST_P(FileLayer, WritesThroughTheCacheWhereDirectAccessIsRefused) {
  FaultKernel faulty(*kernel_, {Fault::fail_once, 1, Call::openat, EINVAL});
  const Directory root = open(Directory::open_private(faulty, root_path_));
  const File file = open(root.create_file("a", true));
  EXPECT_TRUE(file.write_all(bytes("not aligned"), 0));
  EXPECT_EQ(faulty.calls(Call::openat), 3U);
}

TEST_P(FileLayer, ReservesExactlyWhatIsAsked) {
  const File file = open(root_.create_file("a"));
  for (const std::uint64_t length : {10000U, 300U, 0U, 5000U}) {
    EXPECT_TRUE(file.reserve(length));
    EXPECT_EQ(file.size(), length);
  }
}

TEST_P(FileLayer, MakesAllMissingParentsAndFindsThemAgain) {
  const std::string path = root_path_ + "/x/y//z/";
  ASSERT_TRUE(write_text(open(Directory::make_private(*kernel_, path)), "a", "text"));
  EXPECT_EQ(read_text(open(Directory::make_private(*kernel_, path)), "a"), "text");
  EXPECT_EQ(read_text(open(Directory::open_private(*kernel_, path)), "a"), "text");
}

TEST_P(FileLayer, SaysThatADirectoryIsMissing) {
  EXPECT_EQ(code_of(Directory::open_private(*kernel_, root_path_ + "/no")), Code::not_found);
  EXPECT_EQ(code_of(root_.open_child("no")), Code::not_found);
  EXPECT_EQ(code_of(root_.open_file("no", Access::read)), Code::not_found);
  EXPECT_EQ(code_of(Directory::make_private(*kernel_, "")), Code::argument);
  EXPECT_EQ(code_of(Directory::open_private(*kernel_, "")), Code::argument);
}

TEST_P(FileLayer, RefusesADirectoryThatOthersCanWriteAndSaysWhatToDo) {
  ASSERT_EQ(kernel_->mkdirat(root_.fd(), "open", 0775), 0);
  const auto opened = root_.open_child("open");
  EXPECT_EQ(code_of(opened), Code::denied);
  EXPECT_THAT(message_of(opened),
              HasSubstr("(mode 0775); run: chmod go-w " + root_path_ + "/open"));
  EXPECT_EQ(code_of(root_.make_child("open")), Code::denied);
  EXPECT_EQ(code_of(Directory::make_private(*kernel_, root_path_ + "/open")), Code::denied);
  EXPECT_EQ(code_of(Directory::open_private(*kernel_, root_path_ + "/open")), Code::denied);
}

TEST_P(FileLayer, AcceptsADirectoryThatOthersCanOnlyRead) {
  ASSERT_EQ(kernel_->mkdirat(root_.fd(), "readable", 0755), 0);
  EXPECT_TRUE(root_.open_child("readable"));
}

TEST_P(FileLayer, RefusesAFileInADirectorysPlaceAndTheOtherWayRound) {
  ASSERT_TRUE(write_text(root_, "a", "text"));
  ASSERT_TRUE(root_.make_child("d"));
  EXPECT_EQ(code_of(root_.make_child("a")), Code::denied);
  EXPECT_EQ(code_of(root_.open_child("a")), Code::denied);
  EXPECT_EQ(code_of(root_.open_file("d", Access::read)), Code::denied);
  EXPECT_NE(code_of(root_.create_file("d")), Code{0});
}

TEST_P(FileLayer, TakesNoNameThatLeadsElsewhere) {
  for (const std::string_view name :
       {std::string_view(""), std::string_view("."), std::string_view(".."),
        std::string_view("a/b"), std::string_view("/a"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(code_of(root_.create_file(name)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.open_file(name, Access::read)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.make_child(name)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.open_child(name)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.remove_file(name)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.remove_child(name)), Code::argument) << name;
    EXPECT_EQ(code_of(root_.rename(name, root_, "b")), Code::argument) << name;
    EXPECT_EQ(code_of(root_.rename("b", root_, name)), Code::argument) << name;
    EXPECT_EQ(code_of(FileLock::acquire(root_, name, "", 0)), Code::argument) << name;
  }
}

TEST_P(FileLayer, RemovesFilesAndTreesAndDoesNotMindTheirAbsence) {
  ASSERT_TRUE(write_text(open(open(root_.make_child("d")).make_child("e")), "a", "text"));
  ASSERT_TRUE(write_text(root_, "a", "text"));
  EXPECT_NE(code_of(root_.remove_file("d")), Code{0}) << "not a file";
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(root_.remove_child("d"));
    EXPECT_TRUE(root_.remove_file("a"));
  }
  EXPECT_EQ(open(root_.list()).size(), 0U);
}

TEST_P(FileLayer, RefusesToRemoveATreeNestedBeyondReason) {
  std::string path = root_path_ + "/d";
  for (int i = 0; i < 70; ++i) path += "/d";
  ASSERT_TRUE(Directory::make_private(*kernel_, path));
  EXPECT_EQ(code_of(root_.remove_child("d")), Code::denied);
}

TEST_P(FileLayer, TellsWhoHoldsTheLock) {
  const auto held = FileLock::acquire(root_, "lock", "job 7 on node3\nsecond line\n", 0);
  ASSERT_TRUE(held) << message_of(held);
  const auto refused = FileLock::acquire(root_, "lock", "job 8", 0);
  EXPECT_EQ(code_of(refused), Code::busy);
  EXPECT_THAT(message_of(refused), HasSubstr(root_path_ + "/lock is locked by: job 7 on node3"));
  EXPECT_THAT(message_of(refused), Not(HasSubstr("second")));
}

TEST_P(FileLayer, QuotesAHolderWithoutWhatATerminalWouldObey) {
  const auto held = FileLock::acquire(root_, "lock", "\x1b[2J" + std::string(1000, 'x'), 0);
  const std::string message = message_of(FileLock::acquire(root_, "lock", "job 8", 0));
  EXPECT_THAT(message, HasSubstr("?[2Jxxx"));
  EXPECT_LT(message.size(), 200 + 2 * root_path_.size() + 200);  // there are a thousand
}

TEST_P(FileLayer, GivesTheLockToTheNextAndReplacesTheOldText) {
  { const auto held = FileLock::acquire(root_, "lock", "a rather long text", 0); }
  const auto next = FileLock::acquire(root_, "lock", "job 8", 0);
  EXPECT_TRUE(next) << message_of(next);
  EXPECT_EQ(read_text(root_, "lock"), "job 8");
}

TEST_P(FileLayer, MovesALockWithoutLosingIt) {
  auto held = FileLock::acquire(root_, "lock", "job 7", 0);
  ASSERT_TRUE(held);
  { const FileLock moved = std::move(*held); }
  EXPECT_TRUE(FileLock::acquire(root_, "lock", "job 8", 0))
      << "released by the object it was moved to";
}

TEST_P(FileLayer, GoesOnWhenAnyCallIsInterruptedOrCutShort) {
  for (const Fault fault : {Fault::interrupt_once, Fault::short_transfer}) {
    bool reached = true;
    for (std::uint64_t index = 0; reached; ++index) {
      FaultKernel faulty(*kernel_, {fault, index});
      faulty.record_trace(root_path_);
      {
        const Directory top = open(Directory::make_private(faulty, root_path_ + "/x/y"));
        const Directory child = open(top.make_child("d"));
        EXPECT_TRUE(publish(child, "a", "published"));
        EXPECT_TRUE(open(child.create_file("b")).reserve(5000));
        EXPECT_TRUE(FileLock::acquire(child, "lock", "job 7", 0));
        EXPECT_TRUE(child.space());
        EXPECT_EQ(read_text(child, "a"), "published");
        EXPECT_TRUE(top.remove_child("d"));
        EXPECT_EQ(open(top.list()).size(), 0U);
      }
      ASSERT_FALSE(HasFailure()) << "call " << index << ": "
                                 << testing::PrintToString(faulty.trace());
      ASSERT_TRUE(root_.remove_child("x"));
      reached = faulty.reached();
      ASSERT_TRUE(reached || index > 50) << "the sweep ended before the work did";
    }
  }
}

TEST_P(FileLayer, ContinuesDirectTransfersThatWereCutShort) {
  for (const Call call : {Call::pwrite, Call::pread}) {
    FaultKernel faulty(*kernel_, {Fault::short_transfer, 0, call});
    const Directory root = open(Directory::open_private(faulty, root_path_));
    const File file = open(root.create_file("a", true));
    const AlignedBuffer buffer = open(AlignedBuffer::allocate(3 * kPageBytes));
    EXPECT_TRUE(file.write_all(buffer.bytes(), 0));
    EXPECT_TRUE(file.read_exact(buffer.bytes(), 0));
    EXPECT_EQ(faulty.calls(call), 2U);
    const auto queue = faulty.write_queue(1);
    EXPECT_EQ(queue->wait(queue->submit(file.fd(), buffer.bytes(), 0)), 0);
  }
}

TEST_P(FileLayer, GoesOnThroughThePageCacheWhereADirectTransferIsRefused) {
  for (const Call call : {Call::pwrite, Call::pread}) {
    FaultKernel faulty(*kernel_, {Fault::fail_once, 0, call, EINVAL});
    const Directory root = open(Directory::open_private(faulty, root_path_));
    const File file = open(root.create_file("a", true));
    if (!file.is_direct()) GTEST_SKIP() << "this file system has no direct access";
    const AlignedBuffer buffer = open(AlignedBuffer::allocate(kPageBytes));
    EXPECT_TRUE(file.write_all(buffer.bytes(), 0));
    EXPECT_TRUE(file.read_exact(buffer.bytes(), 0));
    EXPECT_FALSE(file.is_direct());
    EXPECT_TRUE(file.write_all(as_byte_view("not aligned"), 1)) << "the kernel was not told";
  }
}

TEST_P(FileLayer, ReportsARefusalThatHasNothingToDoWithDirectAccess) {
  FaultKernel faulty(*kernel_, {Fault::fail_from_here, 0, Call::pwrite, EINVAL});
  const Directory root = open(Directory::open_private(faulty, root_path_));
  EXPECT_EQ(open(root.create_file("a")).write_all(as_byte_view("text"), 0).error().os_errno,
            EINVAL);
  EXPECT_EQ(open(root.create_file("b", true)).write_all(as_byte_view("text"), 0).error().os_errno,
            EINVAL);
}

TEST_P(FileLayer, ReportsEveryErrorWithItsPath) {
  bool reached = true;
  for (std::uint64_t index = 0; reached; ++index) {
    FaultKernel faulty(*kernel_, {Fault::fail_from_here, index, Call::any, EIO});
    const auto work = [&]() -> Status {
      DIAPAUSE_TRY_ASSIGN(const Directory root, Directory::make_private(faulty, root_path_ + "/x"));
      DIAPAUSE_TRY(publish(root, "a", "text"));
      return root.remove_file("a");
    };
    const Status status = work();
    reached = faulty.reached() &&
              faulty.calls() > index + 1;  // the last call is a close, whose error is lost
    if (!reached) break;
    EXPECT_EQ(code_of(status), Code::io) << "call " << index;
    EXPECT_THAT(message_of(status), HasSubstr(root_path_)) << "call " << index;
    EXPECT_TRUE(root_.remove_child("x"));
  }
}

TEST_P(FileLayer, NeverSyncsAgainAfterAFailedSync) {
  FaultKernel faulty(*kernel_, {Fault::fail_once, 0, Call::fsync, EIO});
  const Directory root = open(Directory::open_private(faulty, root_path_));
  EXPECT_EQ(code_of(write_text(root, "a", "text")), Code::io);
  EXPECT_EQ(faulty.calls(Call::fsync), 1U);
}

TEST_P(FileLayer, ReservesWithoutBlocksWhereTheFileSystemHasNoSuchCall) {
  for (const int error : {EOPNOTSUPP, ENOSYS, EINVAL}) {
    FaultKernel faulty(*kernel_, {Fault::fail_once, 0, Call::fallocate, error});
    const Directory root = open(Directory::open_private(faulty, root_path_));
    const File file = open(root.create_file("a"));
    EXPECT_TRUE(file.reserve(5000));
    EXPECT_EQ(file.size(), 5000U);
  }
}

TEST_P(FileLayer, SaysThatTheDiskIsFull) {
  FaultKernel faulty(*kernel_, {Fault::fail_once, 0, Call::fallocate, ENOSPC});
  const Directory root = open(Directory::open_private(faulty, root_path_));
  EXPECT_EQ(code_of(open(root.create_file("a")).reserve(5000)), Code::full);
}

TEST_P(FileLayer, AcceptsFileSystemsThatCannotSyncDirectories) {
  FaultKernel faulty(*kernel_, {Fault::fail_from_here, 0, Call::fsync, EINVAL});
  const Directory root = open(Directory::make_private(faulty, root_path_ + "/x"));
  EXPECT_TRUE(root.sync());
  EXPECT_EQ(code_of(write_text(root, "a", "text")), Code::io) << "of files it is required";
}

}  // namespace
}  // namespace diapause::test_support
