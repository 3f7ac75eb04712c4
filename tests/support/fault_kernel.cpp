#include "support/fault_kernel.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>

namespace diapause::test_support {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Call::any)> kNames = {
    "openat",    "close",    "pread",   "pwrite",     "stop_direct", "fsync",       "fallocate",
    "ftruncate", "fstat",    "fstatat", "fstatvfs",   "renameat",    "unlinkat",    "mkdirat",
    "list",      "try_lock", "unlock",  "map_shared", "unmap",       "map_private", "populate"};

// Whole pages stay whole, because a transfer with O_DIRECT never ends within a sector.
std::size_t half(std::size_t bytes) {
  const std::size_t unit = bytes % kPageBytes == 0 ? kPageBytes : 1;
  return std::min(bytes, std::max(bytes / 2 / unit, std::size_t{1}) * unit);
}

}  // namespace

void FaultKernel::arm(const FaultPlan& plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  counts_ = {};
  reached_ = false;
  failing_.reset();
  failed_ = 0;
  trace_.clear();
}

void FaultKernel::disarm() {
  const std::lock_guard lock(mutex_);
  plan_.fault = Fault::none;
  tracing_ = false;
}

std::uint64_t FaultKernel::calls(Call call) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::size_t>(call)];
}

bool FaultKernel::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool FaultKernel::reached() const {
  const std::lock_guard lock(mutex_);
  return reached_;
}

void FaultKernel::record_trace(std::string root) {
  const std::lock_guard lock(mutex_);
  tracing_ = true;
  root_ = std::move(root);
}

std::vector<std::string> FaultKernel::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

void FaultKernel::hold(Call call, std::string part) {
  const std::lock_guard lock(mutex_);
  held_ = call;
  held_part_ = std::move(part);
}

void FaultKernel::release() {
  const std::lock_guard lock(mutex_);
  held_.reset();
  released_.notify_all();
}

void FaultKernel::wait_where_held(Call call, const std::string& subject) {
  std::unique_lock lock(mutex_);
  released_.wait(lock,
                 [&] { return held_ != call || subject.find(held_part_) == std::string::npos; });
}

FaultKernel::Verdict FaultKernel::judge(Call call) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t index =
      plan_.call == Call::any ? counts_.back() : counts_[static_cast<std::size_t>(call)];
  ++counts_.back();
  ++counts_[static_cast<std::size_t>(call)];
  if (stopped_) return {-EIO};
  if (plan_.fault == Fault::none || (plan_.call != Call::any && plan_.call != call)) return {};
  const bool now = index == plan_.index;
  reached_ = reached_ || now;
  switch (plan_.fault) {
    case Fault::stop:
      stopped_ = now;
      return {now ? -EIO : 0};
    case Fault::fail_from_here:
      return {index >= plan_.index ? -plan_.error : 0};
    case Fault::fail_once:
      if (now) failing_ = call;
      if (failing_ != call || failed_ == plan_.times) return {};
      ++failed_;
      return {-plan_.error};
    case Fault::interrupt_once:
      return {now ? -EINTR : 0};
    case Fault::short_transfer:
      return {0, now};
    case Fault::none:
      break;
  }
  return {};
}

void FaultKernel::note(Call call, const std::string& subject, std::int64_t result) {
  const std::lock_guard lock(mutex_);
  if (!tracing_) return;
  std::string line = kNames[static_cast<std::size_t>(call)];
  line += " " + subject;
  if (result < 0) line += fmt::format(" = {}", result);
  trace_.push_back(std::move(line));
}

template <class Action>
auto FaultKernel::perform(Call call, const std::string& subject, Action action)
    -> decltype(action()) {
  wait_where_held(call, subject);
  const Verdict verdict = judge(call);
  const auto result = verdict.error != 0 ? verdict.error : action();
  note(call, subject, result);
  return result;
}

std::string FaultKernel::path_of(int fd) const {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(fd);
  return found == paths_.end() ? fmt::format("#{}", fd) : found->second;
}

std::string FaultKernel::path_of(int directory, const char* path) const {
  const std::string full =
      directory == AT_FDCWD || path[0] == '/' ? path : path_of(directory) + "/" + path;
  const std::lock_guard lock(mutex_);
  return !root_.empty() && full.starts_with(root_ + "/") ? full.substr(root_.size() + 1) : full;
}

int FaultKernel::openat(int directory, const char* path, int flags, mode_t mode) {
  const std::string full = path_of(directory, path);
  const int fd =
      perform(Call::openat, full, [&] { return inner_.openat(directory, path, flags, mode); });
  const std::lock_guard lock(mutex_);
  if (fd >= 0) paths_[fd] = full;
  return fd;
}

int FaultKernel::close(int fd) {
  const std::string path = path_of(fd);
  const Verdict verdict = judge(Call::close);
  {
    const std::lock_guard lock(mutex_);
    paths_.erase(fd);
  }
  const int closed = inner_.close(fd);
  const int result = verdict.error != 0 ? verdict.error : closed;
  note(Call::close, path, result);
  return result;
}

std::int64_t FaultKernel::pread(int fd, MutableBytes data, std::uint64_t offset) {
  const Verdict verdict = judge(Call::pread);
  if (verdict.halved) data = data.first(half(data.size()));
  const std::int64_t result = verdict.error != 0 ? verdict.error : inner_.pread(fd, data, offset);
  note(Call::pread, path_of(fd), result);
  return result;
}

std::int64_t FaultKernel::pwrite(int fd, ByteView data, std::uint64_t offset) {
  const Verdict verdict = judge(Call::pwrite);
  if (verdict.halved) data = data.first(half(data.size()));
  const std::int64_t result = verdict.error != 0 ? verdict.error : inner_.pwrite(fd, data, offset);
  note(Call::pwrite, path_of(fd), result);
  return result;
}

int FaultKernel::stop_direct(int fd) {
  return perform(Call::stop_direct, path_of(fd), [&] { return inner_.stop_direct(fd); });
}

int FaultKernel::fsync(int fd) {
  return perform(Call::fsync, path_of(fd), [&] { return inner_.fsync(fd); });
}

int FaultKernel::fallocate(int fd, std::uint64_t offset, std::uint64_t length) {
  return perform(Call::fallocate, path_of(fd),
                 [&] { return inner_.fallocate(fd, offset, length); });
}

int FaultKernel::ftruncate(int fd, std::uint64_t length) {
  return perform(Call::ftruncate, path_of(fd), [&] { return inner_.ftruncate(fd, length); });
}

int FaultKernel::fstat(int fd, struct stat* out) {
  return perform(Call::fstat, path_of(fd), [&] { return inner_.fstat(fd, out); });
}

int FaultKernel::fstatat(int directory, const char* path, struct stat* out) {
  return perform(Call::fstatat, path_of(directory, path),
                 [&] { return inner_.fstatat(directory, path, out); });
}

int FaultKernel::fstatvfs(int fd, sys::FileSystemSpace* out) {
  return perform(Call::fstatvfs, path_of(fd), [&] { return inner_.fstatvfs(fd, out); });
}

int FaultKernel::renameat(int from_directory, const char* from, int to_directory, const char* to) {
  const std::string subject = path_of(from_directory, from) + " to " + path_of(to_directory, to);
  return perform(Call::renameat, subject,
                 [&] { return inner_.renameat(from_directory, from, to_directory, to); });
}

int FaultKernel::unlinkat(int directory, const char* path, int flags) {
  return perform(Call::unlinkat, path_of(directory, path),
                 [&] { return inner_.unlinkat(directory, path, flags); });
}

int FaultKernel::mkdirat(int directory, const char* path, mode_t mode) {
  return perform(Call::mkdirat, path_of(directory, path),
                 [&] { return inner_.mkdirat(directory, path, mode); });
}

int FaultKernel::list(int directory, std::vector<sys::DirectoryEntry>* out) {
  return perform(Call::list, path_of(directory), [&] { return inner_.list(directory, out); });
}

int FaultKernel::try_lock(int fd) {
  return perform(Call::try_lock, path_of(fd), [&] { return inner_.try_lock(fd); });
}

int FaultKernel::unlock(int fd) {
  return perform(Call::unlock, path_of(fd), [&] { return inner_.unlock(fd); });
}

std::byte* FaultKernel::map_shared(int fd, std::uint64_t length, int* error) {
  const Verdict verdict = judge(Call::map_shared);
  *error = -verdict.error;
  std::byte* base = verdict.error != 0 ? nullptr : inner_.map_shared(fd, length, error);
  note(Call::map_shared, path_of(fd), base == nullptr ? -*error : 0);
  return base;
}

std::byte* FaultKernel::map_private(int fd, std::uint64_t offset, std::uint64_t length,
                                    int* error) {
  const Verdict verdict = judge(Call::map_private);
  *error = -verdict.error;
  std::byte* base = verdict.error != 0 ? nullptr : inner_.map_private(fd, offset, length, error);
  note(Call::map_private, path_of(fd), base == nullptr ? -*error : 0);
  return base;
}

int FaultKernel::populate(std::byte* base, std::uint64_t length) {
  return perform(Call::populate, fmt::format("{} bytes", length),
                 [&] { return inner_.populate(base, length); });
}

int FaultKernel::unmap(std::byte* base, std::uint64_t length) {
  const Verdict verdict = judge(Call::unmap);
  const int unmapped = inner_.unmap(base, length);
  const int result = verdict.error != 0 ? verdict.error : unmapped;
  note(Call::unmap, fmt::format("{} bytes", length), result);
  return result;
}

}  // namespace diapause::test_support
