// Every way in which memory can be written without a store of the program: an image holds the
// memory as it was at the begin, the next one what was written since, and the writer is not
// disturbed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>

#include "conformance/capture_world.hpp"
#include "support/scratch_directory.hpp"
#include "sys/kernel.hpp"
#include "sys/unseen_writers.hpp"

namespace diapause::capture {
namespace {

using config::CaptureStrategy;
using policy::CaptureMethod;
using testing::HasSubstr;

constexpr std::size_t kWrittenBytes = 1000;

class Writer {
 public:
  virtual ~Writer() = default;
  // It is called once, before anything is captured, and returns false if this machine has no such
  // writer.
  virtual bool prepare(MutableBytes) { return true; }
  // Puts kWrittenBytes of `value` at `at` in the memory.
  virtual bool write(MutableBytes memory, std::size_t at, std::byte value) = 0;
};

std::array<std::byte, kWrittenBytes> piece_of(std::byte value) {
  std::array<std::byte, kWrittenBytes> piece{};
  piece.fill(value);
  return piece;
}

// A file that holds what is to be written, opened anew.
int file_with(const test_support::ScratchDirectory& place, std::byte value) {
  return ::open(place.write("file", std::string(kWrittenBytes, static_cast<char>(value))).c_str(),
                O_RDONLY | O_CLOEXEC);
}

class RingWriter : public Writer {
 public:
  explicit RingWriter(unsigned flags) : flags_(flags) {}
  ~RingWriter() override {
    if (works_) ::io_uring_queue_exit(&ring_);
  }
  bool prepare(MutableBytes memory) override {
    io_uring_params parameters{};
    parameters.flags = flags_;
    works_ = ::io_uring_queue_init_params(4, &ring_, &parameters) == 0;
    return works_ && prepare_ring(memory);
  }
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const int file = file_with(place_, value);
    put(::io_uring_get_sqe(&ring_), file, memory.data() + at);
    io_uring_cqe* done = nullptr;
    const bool written = ::io_uring_submit(&ring_) >= 0 &&
                         ::io_uring_wait_cqe(&ring_, &done) == 0 &&
                         done->res == static_cast<int>(kWrittenBytes);
    if (done != nullptr) ::io_uring_cqe_seen(&ring_, done);
    ::close(file);
    return written;
  }

 protected:
  virtual bool prepare_ring(MutableBytes) { return true; }
  virtual void put(io_uring_sqe* request, int file, std::byte* to) {
    ::io_uring_prep_read(request, file, to, kWrittenBytes, 0);
  }
  io_uring ring_{};

 private:
  const unsigned flags_;
  bool works_ = false;
  test_support::ScratchDirectory place_;
};

class PinnedByRing : public RingWriter {
 public:
  PinnedByRing() : RingWriter(0) {}

 protected:
  bool prepare_ring(MutableBytes memory) override {
    const iovec buffer{memory.data(), memory.size()};
    return ::io_uring_register_buffers(&ring_, &buffer, 1) == 0;
  }
  void put(io_uring_sqe* request, int file, std::byte* to) override {
    ::io_uring_prep_read_fixed(request, file, to, kWrittenBytes, 0, 0);
  }
};

class AsynchronousRead : public Writer {
 public:
  ~AsynchronousRead() override {
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
  }
  bool prepare(MutableBytes) override { return ::syscall(SYS_io_setup, 4, &context_) == 0; }
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const int file = file_with(place_, value);
    iocb request{};
    request.aio_lio_opcode = IOCB_CMD_PREAD;
    request.aio_fildes = static_cast<std::uint32_t>(file);
    request.aio_buf = reinterpret_cast<std::uintptr_t>(memory.data() + at);
    request.aio_nbytes = kWrittenBytes;
    iocb* requests[] = {&request};
    io_event done{};
    const bool written = ::syscall(SYS_io_submit, context_, 1, requests) == 1 &&
                         ::syscall(SYS_io_getevents, context_, 1, 1, &done, nullptr) == 1 &&
                         done.res == static_cast<std::int64_t>(kWrittenBytes);
    ::close(file);
    return written;
  }

 private:
  aio_context_t context_ = 0;
  test_support::ScratchDirectory place_;
};

class DirectRead : public Writer {
 public:
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const std::string path =
        place_.write("file", std::string(2 * kPageBytes, static_cast<char>(value)));
    const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file < 0) return false;
    std::byte* const to = memory.data() + at / kPageBytes * kPageBytes;
    const bool written =
        ::pread(file, to, 2 * kPageBytes, 0) == static_cast<ssize_t>(2 * kPageBytes);
    ::close(file);
    return written;
  }

 private:
  test_support::ScratchDirectory place_;
};

class Pipe : public Writer {
 public:
  bool prepare(MutableBytes) override { return ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() override {
    for (const int end : ends_) ::close(end);
  }
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const auto piece = piece_of(value);
    const iovec target{memory.data() + at, kWrittenBytes};
    return ::write(ends_[1], piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()) &&
           ::vmsplice(ends_[0], &target, 1, 0) == static_cast<ssize_t>(kWrittenBytes);
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

class OtherProcess : public Writer {
 public:
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      auto piece = piece_of(value);
      const iovec from{piece.data(), piece.size()};
      const iovec to{memory.data() + at, kWrittenBytes};
      ::_exit(::process_vm_writev(parent, &from, 1, &to, 1, 0) ==
                      static_cast<ssize_t>(kWrittenBytes)
                  ? 0
                  : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
};

class MemoryFile : public Writer {
 public:
  ~MemoryFile() override { ::close(file_); }
  bool prepare(MutableBytes) override {
    file_ = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    return file_ >= 0;
  }
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const auto piece = piece_of(value);
    return ::pwrite(file_, piece.data(), piece.size(),
                    reinterpret_cast<off_t>(memory.data() + at)) ==
           static_cast<ssize_t>(piece.size());
  }

 private:
  int file_ = -1;
};

// Attached from the begin on; writes when a byte comes, and answers with one.
class Debugger : public Writer {
 public:
  ~Debugger() override {
    for (const int end : {orders_[1], orders_[0], answers_[0], answers_[1]}) ::close(end);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  bool prepare(MutableBytes) override {
    if (::pipe2(orders_.data(), O_CLOEXEC) != 0 || ::pipe2(answers_.data(), O_CLOEXEC) != 0)
      return false;
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) debug(parent);
    return answer() == 'y';
  }
  bool write(MutableBytes memory, std::size_t at, std::byte value) override {
    const Order order{memory.data() + at, value};
    return ::write(orders_[1], &order, sizeof order) == sizeof order && answer() == 'y';
  }

 private:
  struct Order {
    std::byte* at;
    std::byte value;
  };
  char answer() const {
    char text = 'n';
    return ::read(answers_[0], &text, 1) == 1 ? text : 'n';
  }
  void say(bool good) const { (void)!::write(answers_[1], good ? "y" : "n", 1); }
  [[noreturn]] void debug(pid_t program) const {
    ::close(orders_[1]);
    say(::ptrace(PTRACE_SEIZE, program, nullptr, nullptr) == 0);
    for (Order order{}; ::read(orders_[0], &order, sizeof order) == sizeof order;) {
      int status = 0;
      bool good = ::ptrace(PTRACE_INTERRUPT, program, nullptr, nullptr) == 0 &&
                  ::waitpid(program, &status, __WALL) == program;
      long word = 0;
      std::memset(&word, static_cast<int>(order.value), sizeof word);
      for (std::size_t i = 0; i < kWrittenBytes; i += sizeof word) {
        good = good && ::ptrace(PTRACE_POKEDATA, program, order.at + i, word) == 0;
      }
      ::ptrace(PTRACE_CONT, program, nullptr, nullptr);
      say(good);
    }
    ::_exit(0);
  }
  std::array<int, 2> orders_ = {-1, -1};
  std::array<int, 2> answers_ = {-1, -1};
  pid_t child_ = -1;
};

struct WriterCase {
  std::string name;
  std::function<std::unique_ptr<Writer>()> make;
  CaptureStrategy strategy;
};

void PrintTo(const WriterCase& one, std::ostream* out) { *out << one.name; }

class CapturesBesideAWriter : public testing::TestWithParam<WriterCase> {};

// The program waits for the writer while the capture is open, and writes in between as well.
TEST_P(CapturesBesideAWriter, AreRightAndLeaveItAlone) {
  CaptureWorld world({"", GetParam().strategy});
  const MutableBytes memory = world.add(8 * kMiB);
  const auto writer = GetParam().make();
  if (!writer->prepare(memory)) GTEST_SKIP() << "this machine has no such writer";
  world.expect_captured(0);
  memory[0] ^= std::byte{1};
  world.expect_captured(0);
  world.expect_captured(1);
  for (std::size_t round = 0; round < 6; ++round) {
    const auto value = static_cast<std::byte>(0x40 + round);
    ASSERT_TRUE(world.begin(round % 2));
    ASSERT_TRUE(writer->write(memory, 5 * kMiB + 4096 * round + 16, value)) << "round " << round;
    world.expect_drained();
    ASSERT_EQ(memory[5 * kMiB + 4096 * round + 16], value);
    ASSERT_TRUE(writer->write(memory, kMiB * round + 8, value));
  }
  world.expect_captured(0);
  world.expect_captured(1);
}

std::vector<WriterCase> writer_cases() {
  const std::vector<std::pair<std::string, std::function<std::unique_ptr<Writer>()>>> writers = {
      {"PinnedByRing", [] { return std::make_unique<PinnedByRing>(); }},
      {"Ring", [] { return std::make_unique<RingWriter>(0); }},
      {"PollingRing", [] { return std::make_unique<RingWriter>(IORING_SETUP_SQPOLL); }},
      {"AsynchronousRead", [] { return std::make_unique<AsynchronousRead>(); }},
      {"DirectRead", [] { return std::make_unique<DirectRead>(); }},
      {"Pipe", [] { return std::make_unique<Pipe>(); }},
      {"OtherProcess", [] { return std::make_unique<OtherProcess>(); }},
      {"MemoryFile", [] { return std::make_unique<MemoryFile>(); }},
      {"Debugger", [] { return std::make_unique<Debugger>(); }}};
  std::vector<WriterCase> all;
  for (const auto& [name, make] : writers) {
    all.push_back({name + "Automatic", make, CaptureStrategy::automatic});
    all.push_back({name + "CopyOnWrite", make, CaptureStrategy::copy_on_write});
    all.push_back({name + "Incremental", make, CaptureStrategy::incremental});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, CapturesBesideAWriter, testing::ValuesIn(writer_cases()),
                         [](const auto& test) { return test.param.name; });

// Expects this reason for taking neither protection nor tracking while `writer` exists. Images are
// right all the same.
void expect_refused(Writer& writer, const std::string& reason) {
  CaptureWorld world({"", CaptureStrategy::copy_on_write});
  const MutableBytes memory = world.add(2 * kMiB);
  if (!writer.prepare(memory)) GTEST_SKIP() << "this machine has no such writer";
  world.expect_captured(0);
  EXPECT_EQ(world.report().method, CaptureMethod::copy);
  EXPECT_THAT(world.report().reason, HasSubstr(reason));
  CaptureWorld incremental({"", CaptureStrategy::incremental});
  incremental.add_at(memory);
  incremental.expect_captured(0);
  EXPECT_THAT(incremental.report().reason, HasSubstr("by checksum: "));
}

TEST(UnseenWriters, ArePagesThatWerePinned) {
  PinnedByRing writer;
  expect_refused(writer, "pinned");
}

TEST(UnseenWriters, AreReadsThatARingMayHaveUnderWay) {
  RingWriter writer(0);
  expect_refused(writer, "io_uring");
}

TEST(UnseenWriters, AreAsynchronousReadsThatMayBeUnderWay) {
  AsynchronousRead writer;
  expect_refused(writer, "asynchronous I/O");
}

TEST(UnseenWriters, AreNotOurOwnQueues) {
  const auto queue = sys::real_kernel().write_queue(8);
  const auto reads = sys::real_kernel().read_queue(8);
  EXPECT_EQ(sys::find_unseen_writers().past_protection, "");
}

TEST(UnseenWriters, AreThereWhereTheProcessCannotBeLookedAt) {
  const test_support::ScratchDirectory empty;
  EXPECT_NE(sys::find_unseen_writers(empty.path()).past_protection, "");
}

TEST(WritersThatCannotWait, AreDebuggers) {
  const test_support::ScratchDirectory process;
  std::filesystem::create_directory(process.path() / "fd");
  process.write("status", "Name:\ta\nTracerPid:\t17\nVmPin:\t       0 kB\n");
  const sys::UnseenWriters found = sys::find_unseen_writers(process.path());
  EXPECT_EQ(found.past_protection, "");
  EXPECT_THAT(found.cannot_wait, HasSubstr("debugger"));
}

TEST(WritersThatCannotWait, WriteThroughFilesThatStandForMemory) {
  EXPECT_EQ(sys::find_unseen_writers().cannot_wait, "");
  MemoryFile writer;
  ASSERT_TRUE(writer.prepare({}));
  EXPECT_THAT(sys::find_unseen_writers().cannot_wait, HasSubstr("/mem open"));
}

}  // namespace
}  // namespace diapause::capture
