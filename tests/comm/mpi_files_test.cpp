// Files that ranks write together, over the MPI that this was built with: what it does not write
// must not pass for written, whatever it says.
#include <gtest/gtest.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "comm/mpi/mpi_comm.hpp"

namespace {

enum class Fate { written, refused, lost };
std::atomic<Fate> fate = Fate::written;

bool is_watched(int fd) {
  std::array<char, 256> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size() - 1);
  // A file that the MPI library keeps elsewhere, under a name that it makes of this one, does not
  // count.
  return length > 0 &&
         std::string_view(target.data()).find("/diapause-test-") != std::string_view::npos;
}

// Says what becomes of a write of `bytes` that this process makes, in whichever library.
template <class Call>
ssize_t judge(int fd, std::size_t bytes, Call call) {
  const Fate what = fate;
  if (what == Fate::written || !is_watched(fd)) return static_cast<ssize_t>(call());
  if (what == Fate::lost) return static_cast<ssize_t>(bytes);
  errno = ENOSPC;
  return -1;
}

std::size_t bytes_of(const iovec* parts, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

}  // namespace

// In place of those of the C library, for all that is linked to this program.
#pragma GCC visibility push(default)
extern "C" {
ssize_t write(int fd, const void* data, std::size_t bytes) {
  return judge(fd, bytes, [&] { return ::syscall(SYS_write, fd, data, bytes); });
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return judge(fd, bytes_of(parts, count), [&] { return ::syscall(SYS_writev, fd, parts, count); });
}
ssize_t pwrite(int fd, const void* data, std::size_t bytes, off_t offset) {
  return judge(fd, bytes, [&] { return ::syscall(SYS_pwrite64, fd, data, bytes, offset); });
}
ssize_t pwrite64(int fd, const void* data, std::size_t bytes, off64_t offset) {
  return judge(fd, bytes, [&] { return ::syscall(SYS_pwrite64, fd, data, bytes, offset); });
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return judge(fd, bytes_of(parts, count),
               [&] { return ::syscall(SYS_pwritev, fd, parts, count, offset, 0); });
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return judge(fd, bytes_of(parts, count),
               [&] { return ::syscall(SYS_pwritev, fd, parts, count, offset, 0); });
}
}
#pragma GCC visibility pop

namespace diapause::comm {
namespace {

constexpr std::uint64_t kPartBytes = 20 * kMiB + 12345;  // more than is written at a time

class Noise : public ByteSource {
 public:
  explicit Noise(std::uint32_t rank) : rank_(rank) {}
  std::uint64_t size() const override { return kPartBytes; }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    for (std::size_t i = 0; i < scratch.size(); ++i) scratch[i] = at(offset + i);
    return ByteView(scratch);
  }
  std::byte at(std::uint64_t offset) const {
    return static_cast<std::byte>(1 + (offset * 31 + rank_ * 7) % 251);
  }

 private:
  std::uint32_t rank_;
};

// A file that both ranks write into, filled with zeros as a reserved one is.
class MpiFiles : public testing::Test {
 protected:
  void SetUp() override {
    auto comm = make_mpi_comm(MPI_COMM_WORLD);
    ASSERT_TRUE(comm) << comm.error().message;
    comm_ = std::move(*comm);
    std::array<char, 256> place{};
    const std::string name =
        (std::filesystem::temp_directory_path() / "diapause-test-XXXXXX").string();
    std::copy(name.begin(), name.end(), place.begin());
    if (comm_->rank() == 0 && ::mkdtemp(place.data()) == nullptr) place.fill('\0');
    ASSERT_TRUE(comm_->broadcast(std::as_writable_bytes(std::span(place)), 0));
    place_ = place.data();
    ASSERT_NE(place_, "");
    if (comm_->rank() == 0) {
      std::ofstream(path()).close();
      std::filesystem::resize_file(path(), comm_->size() * kPartBytes);
    }
    ASSERT_TRUE(comm_->barrier());
  }
  void TearDown() override {
    fate = Fate::written;
    (void)comm_->barrier();
    if (comm_->rank() == 0) std::filesystem::remove_all(place_);
  }
  // Open MPI names a semaphore of the machine after the last component, and one that a killed
  // process has left would hold up whoever opens a file of that name.
  std::string path() const {
    return place_ + "/written-together-" + place_.substr(place_.size() - 6);
  }
  Status write() {
    Noise bytes(comm_->rank());
    return comm_->file_writer()->write({path(), 0, comm_->rank() * kPartBytes}, bytes);
  }
  // All ranks learn whether one of them fails, which is all that a checkpoint needs.
  bool fails_somewhere() {
    const auto any = comm_->all_max(write() ? 0 : 1);
    return any && *any == 1;
  }

  std::unique_ptr<Comm> comm_;
  std::string place_;
};

TEST_F(MpiFiles, HoldWhatEveryRankHasWritten) {
  const Status written = write();
  ASSERT_TRUE(written) << written.error().message;
  std::ifstream file(path(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(comm_->rank() * kPartBytes));
  std::string text(kPartBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const Noise expected(comm_->rank());
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kPartBytes; ++i)
    wrong += static_cast<std::byte>(text[i]) == expected.at(i) ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
}

TEST_F(MpiFiles, AreNotWrittenWhereTheSystemRefusesIt) {
  fate = Fate::refused;
  EXPECT_TRUE(fails_somewhere());
}

TEST_F(MpiFiles, AreNotWrittenWhereOneRankCannot) {
  if (comm_->rank() == 0) fate = Fate::refused;
  EXPECT_TRUE(fails_somewhere());
}

TEST_F(MpiFiles, AreNotWrittenWhereTheSystemOnlySaysSo) {
  fate = Fate::lost;
  EXPECT_TRUE(fails_somewhere());
}

}  // namespace
}  // namespace diapause::comm

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
