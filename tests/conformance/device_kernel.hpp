// The machine's kernel for files, with devices that a test makes up and files that fail when it
// says so.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "sys/kernel.hpp"

namespace diapause::energy {

// Only what meters and the governor call.
class DeviceKernel final : public sys::Kernel {
 public:
  // Opening and reading a path that ends like this fails; 0: no longer.
  void fail_path(const std::string& ending, int error) {
    const std::lock_guard lock(mutex_);
    errors_[ending] = error;
  }
  // The devices behind all files that are open have gone; files opened from now on are new ones.
  void lose_open_files() {
    for (auto& [fd, path] : paths_) path = kGone;
    fail_path(kGone, ENODEV);
  }
  // The values of performance counters, by configuration and processor. Without an entry there is
  // no such counter.
  std::map<std::pair<std::uint64_t, int>, std::uint64_t> perf;
  int perf_error = 0;
  std::function<int(unsigned long request, void* argument)> on_ioctl;

  int openat(int directory, const char* path, int flags, mode_t mode) override {
    if (const int error = error_of(path); error != 0) return -error;
    const int fd = real_.openat(directory, path, flags, mode);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  int close(int fd) override {
    paths_.erase(fd);
    counters_.erase(fd);
    return real_.close(fd);
  }
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override {
    if (const int error = error_of(paths_[fd]); error != 0) return -error;
    return real_.pread(fd, data, offset);
  }
  int fstat(int fd, struct stat* out) override { return real_.fstat(fd, out); }
  int list(int directory, std::vector<sys::DirectoryEntry>* out) override {
    return real_.list(directory, out);
  }

  int perf_counter(std::uint32_t, std::uint64_t config, int cpu) override {
    if (perf_error != 0) return -perf_error;
    if (!perf.contains({config, cpu})) return -EINVAL;
    const int fd = real_.openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
    counters_[fd] = {config, cpu};
    return fd;
  }
  std::int64_t read(int fd, MutableBytes data) override {
    const auto [config, cpu] = counters_[fd];
    if (const int error = error_of("perf " + std::to_string(config) + " " + std::to_string(cpu));
        error != 0) {
      return -error;
    }
    std::memcpy(data.data(), &perf[{config, cpu}], sizeof(std::uint64_t));
    return sizeof(std::uint64_t);
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (const int error = error_of(paths_[fd]); error != 0) return -error;
    return on_ioctl(request, argument);
  }

  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override {
    return real_.pwrite(fd, data, offset);
  }
  int fsync(int fd) override { return real_.fsync(fd); }
  int fallocate(int, std::uint64_t, std::uint64_t) override { return -ENOSYS; }
  int ftruncate(int fd, std::uint64_t length) override { return real_.ftruncate(fd, length); }
  int fstatvfs(int, sys::FileSystemSpace*) override { return -ENOSYS; }
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override {
    return real_.renameat(from_directory, from, to_directory, to);
  }
  int unlinkat(int directory, const char* path, int flags) override {
    return real_.unlinkat(directory, path, flags);
  }
  int mkdirat(int directory, const char* path, mode_t mode) override {
    return real_.mkdirat(directory, path, mode);
  }
  int try_lock(int fd) override { return real_.try_lock(fd); }
  int unlock(int fd) override { return real_.unlock(fd); }
  std::byte* map_shared(int, std::uint64_t, int* error) override {
    *error = ENOSYS;
    return nullptr;
  }
  int unmap(std::byte*, std::uint64_t) override { return -ENOSYS; }

 private:
  int error_of(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [ending, error] : errors_) {
      if (path.ends_with(ending)) return error;
    }
    return 0;
  }

  static constexpr const char* kGone = "(gone)";
  sys::Kernel& real_ = sys::real_kernel();
  mutable std::mutex mutex_;
  std::map<std::string, int> errors_;
  std::map<int, std::string> paths_;
  std::map<int, std::pair<std::uint64_t, int>> counters_;
};

}  // namespace diapause::energy
