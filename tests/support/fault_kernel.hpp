// A kernel that makes another one's calls, counts them, and lets one of them go wrong: run the
// thing under test once to count its calls, then once per call with a fault there.
#pragma once

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sys/kernel.hpp"

namespace diapause::test_support {

enum class Call {
  openat,
  close,
  pread,
  pwrite,
  stop_direct,
  fsync,
  fallocate,
  ftruncate,
  fstat,
  fstatat,
  fstatvfs,
  renameat,
  unlinkat,
  mkdirat,
  list,
  try_lock,
  unlock,
  map_shared,
  unmap,
  map_private,
  populate,
  any,  // in a plan: count all calls
};

enum class Fault {
  none,
  stop,       // the process dies here: neither this call nor any later one happens, all return -EIO
  fail_once,  // returns -error; with FaultPlan::times, so do the next calls of its kind
  fail_from_here,  // this call and every later one of that kind return -error
  interrupt_once,  // returns -EINTR
  short_transfer,  // a read or write moves half of its bytes, at least one; of whole pages half of
                   // the pages, at least one
};

struct FaultPlan {
  Fault fault = Fault::none;
  std::uint64_t index = 0;  // the first call is number 0
  Call call = Call::any;    // the calls that `index` counts
  int error = EIO;
  std::uint64_t times = 1;  // fail_once: how many calls fail
};

// A close or unmap that is to go wrong still gives its descriptor or memory back, as Linux does,
// and as the death of a process does. Mapped memory is written without calls. Writes of its queue
// are its own pwrite calls.
class FaultKernel final : public sys::Kernel {
 public:
  explicit FaultKernel(sys::Kernel& inner, FaultPlan plan = {}) : inner_(inner), plan_(plan) {}

  // From now on this is the plan, and calls are counted from here. It must not be called after a
  // stop.
  void arm(const FaultPlan& plan);
  // From now on no call fails any more. The record stays.
  void disarm();

  // From now on every call of that kind whose subject contains `part`, in whatever thread, waits
  // until release().
  void hold(Call call, std::string part);
  void release();

  std::uint64_t calls(Call call = Call::any) const;
  bool stopped() const;
  // Returns whether the planned call has come. A sweep ends where it has not.
  bool reached() const;
  // Every call from now on as "fsync v3/r0.img", with "= -5" behind it if it failed. Paths below
  // `root` lose it.
  void record_trace(std::string root);
  std::vector<std::string> trace() const;

  int openat(int directory, const char* path, int flags, mode_t mode) override;
  int close(int fd) override;
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override;
  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override;
  int stop_direct(int fd) override;
  int fsync(int fd) override;
  int fallocate(int fd, std::uint64_t offset, std::uint64_t length) override;
  int ftruncate(int fd, std::uint64_t length) override;
  int fstat(int fd, struct stat* out) override;
  int fstatat(int directory, const char* path, struct stat* out) override;
  int fstatvfs(int fd, sys::FileSystemSpace* out) override;
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override;
  int unlinkat(int directory, const char* path, int flags) override;
  int mkdirat(int directory, const char* path, mode_t mode) override;
  int list(int directory, std::vector<sys::DirectoryEntry>* out) override;
  int try_lock(int fd) override;
  int unlock(int fd) override;
  std::byte* map_shared(int fd, std::uint64_t length, int* error) override;
  int unmap(std::byte* base, std::uint64_t length) override;
  std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* error) override;
  int populate(std::byte* base, std::uint64_t length) override;

 private:
  struct Verdict {
    int error = 0;        // -errno to return instead of the call
    bool halved = false;  // move half of the bytes
  };
  Verdict judge(Call call);
  template <class Action>
  auto perform(Call call, const std::string& subject, Action action) -> decltype(action());
  void wait_where_held(Call call, const std::string& subject);
  void note(Call call, const std::string& subject, std::int64_t result);
  std::string path_of(int fd) const;
  std::string path_of(int directory, const char* path) const;

  sys::Kernel& inner_;
  mutable std::mutex mutex_;
  FaultPlan plan_;
  std::condition_variable released_;
  std::optional<Call> held_;  // calls of this kind wait
  std::string held_part_;
  std::optional<Call> failing_;  // for fail_once: the kind of the call that failed first
  std::uint64_t failed_ = 0;     // how many calls have failed
  std::array<std::uint64_t, static_cast<std::size_t>(Call::any) + 1> counts_{};
  bool stopped_ = false;
  bool reached_ = false;
  bool tracing_ = false;
  std::string root_;
  std::vector<std::string> trace_;
  std::unordered_map<int, std::string> paths_;
};

}  // namespace diapause::test_support
