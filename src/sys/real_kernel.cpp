#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "sys/kernel.hpp"
#include "sys/large_pages.hpp"
#include "sys/robust.hpp"
#include "sys/uring_queue.hpp"

namespace diapause::sys {
namespace {

template <class T>
T value_or_errno(T value) {
  return value < 0 ? static_cast<T>(-errno) : value;
}

bool is_directory(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status;
  return ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

int read_entries(DIR* stream, std::vector<DirectoryEntry>* out) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (entry == nullptr) return -errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      out->push_back({std::string(name), is_directory(::dirfd(stream), *entry)});
  }
}

// Locks the whole file for as long as any descriptor of this opening exists, as flock does.
int set_range_lock(int fd, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return value_or_errno(::fcntl(fd, F_OFD_SETLK, &lock));
}

// A file that gets larger than `ulimit -f` allows ends the process by a signal to the thread that
// writes. While one of these lives, the call returns EFBIG and nothing else happens.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    sigset_t waiting;
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    is_active_ = ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGXFSZ) == 0 &&
                 ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;
  ~WithoutSizeSignal() {
    if (!is_active_) return;
    const int error = errno;
    const timespec at_once{};
    ::sigtimedwait(&signal_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  bool is_active_ = false;
  sigset_t signal_{}, before_{};
};

class RealKernel final : public Kernel {
 public:
  int openat(int directory, const char* path, int flags, mode_t mode) override {
    return open_above_standard_streams(
        [&] { return static_cast<int>(value_or_errno(::openat(directory, path, flags, mode))); });
  }
  int close(int fd) override { return value_or_errno(::close(fd)); }
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override {
    return value_or_errno(
        std::int64_t{::pread(fd, data.data(), data.size(), static_cast<off_t>(offset))});
  }
  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override {
    const WithoutSizeSignal guard;
    return value_or_errno(
        std::int64_t{::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset))});
  }
  int stop_direct(int fd) override {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags < 0 ? -errno : value_or_errno(::fcntl(fd, F_SETFL, flags & ~O_DIRECT));
  }
  int fsync(int fd) override { return value_or_errno(::fsync(fd)); }
  int fallocate(int fd, std::uint64_t offset, std::uint64_t length) override {
    const WithoutSizeSignal guard;
    return value_or_errno(
        ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(length)));
  }
  int ftruncate(int fd, std::uint64_t length) override {
    const WithoutSizeSignal guard;
    return value_or_errno(::ftruncate(fd, static_cast<off_t>(length)));
  }
  int fstat(int fd, struct stat* out) override { return value_or_errno(::fstat(fd, out)); }
  int fstatat(int directory, const char* path, struct stat* out) override {
    return value_or_errno(::fstatat(directory, path, out, AT_SYMLINK_NOFOLLOW));
  }
  int fstatvfs(int fd, FileSystemSpace* out) override {
    struct statvfs space;
    struct statfs kind;
    if (::fstatvfs(fd, &space) != 0 || ::fstatfs(fd, &kind) != 0) return -errno;
    const bool is_memory = kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC;
    *out = {space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize, is_memory};
    return 0;
  }
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override {
    return value_or_errno(::renameat(from_directory, from, to_directory, to));
  }
  int unlinkat(int directory, const char* path, int flags) override {
    return value_or_errno(::unlinkat(directory, path, flags));
  }
  int mkdirat(int directory, const char* path, mode_t mode) override {
    return value_or_errno(::mkdirat(directory, path, mode));
  }

  int list(int directory, std::vector<DirectoryEntry>* out) override {
    // The directory is opened anew, because a duplicate would share its reading position with every
    // other user of the descriptor.
    const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    DIR* stream = ::fdopendir(fd);
    if (stream == nullptr) {
      const int error = errno;
      ::close(fd);
      return -error;
    }
    out->clear();
    const int result = read_entries(stream, out);
    ::closedir(stream);
    return result;
  }

  int real_path(int directory, std::string* out) override {
    std::error_code error;
    const auto path =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(directory), error);
    if (error) return -error.value();
    *out = path.string();
    return 0;
  }

  int try_lock(int fd) override { return value_or_errno(::flock(fd, LOCK_EX | LOCK_NB)); }
  int unlock(int fd) override { return value_or_errno(::flock(fd, LOCK_UN)); }
  int try_range_lock(int fd) override { return set_range_lock(fd, F_WRLCK); }
  int unlock_range(int fd) override { return set_range_lock(fd, F_UNLCK); }

  void back_by_large_pages(int fd, std::uint64_t begin, std::uint64_t end) override {
    sys::back_by_large_pages(fd, begin, end);
  }
  std::byte* map_shared(int fd, std::uint64_t length, int* error) override {
    return map_for_large_pages(fd, length, error);
  }
  std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* error) override {
    return map_private_for_large_pages(fd, offset, length, error);
  }
  int populate(std::byte* base, std::uint64_t length) override {
    constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ of Linux 5.14, which older headers lack
    return value_or_errno(::madvise(base, length, kPopulateRead));
  }
  int unmap(std::byte* base, std::uint64_t length) override {
    return value_or_errno(::munmap(base, length));
  }

  int perf_counter(std::uint32_t type, std::uint64_t config, int cpu) override {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    const long fd = ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return static_cast<int>(value_or_errno(fd));
  }
  std::int64_t read(int fd, MutableBytes data) override {
    return value_or_errno(std::int64_t{::read(fd, data.data(), data.size())});
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return value_or_errno(::ioctl(fd, request, argument));
  }

  bool has_queues() override { return make_uring_queue(1) != nullptr; }

  std::unique_ptr<WriteQueue> write_queue(unsigned depth) override {
    auto queue = make_uring_queue(depth);
    // Containers and hardened machines refuse io_uring. The plain queue is slower and equally
    // correct.
    return queue != nullptr ? std::move(queue) : Kernel::write_queue(depth);
  }

  std::unique_ptr<ReadQueue> read_queue(unsigned depth) override {
    auto queue = make_uring_read_queue(depth);
    return queue != nullptr ? std::move(queue) : Kernel::read_queue(depth);
  }
};

}  // namespace

Kernel& real_kernel() {
  static RealKernel kernel;
  return kernel;
}

}  // namespace diapause::sys
