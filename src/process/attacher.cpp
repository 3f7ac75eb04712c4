#include "process/attacher.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr long kLook_ns = 2'000'000;  // an attachment that need not wait takes microseconds

int timer_signal() { return SIGRTMAX; }

void handle(int, siginfo_t* signal, void*) {
  if (signal->si_code != SI_TIMER) return;
  const int error = errno;
  bury_ended_threads(*static_cast<const pid_t*>(signal->si_value.sival_ptr));
  errno = error;
}

Status set_handler(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction wanted {};
  wanted.sa_flags = SA_RESTART;
  if (handler == nullptr) {
    wanted.sa_handler = SIG_IGN;  // which also takes back a signal that waits
  } else {
    wanted.sa_sigaction = handler;
    wanted.sa_flags |= SA_SIGINFO;
  }
  if (::sigaction(timer_signal(), &wanted, nullptr) != 0)
    return fail(os_error("handling the signal of a timer", errno));
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, timer_signal());
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  return {};
}

}  // namespace

// The library's functions for directories allocate memory.
void bury_ended_threads(pid_t process) {
  constexpr std::string_view kBefore = "/proc/", kBehind = "/task";
  std::array<char, 32> path{};
  char* const number = std::ranges::copy(kBefore, path.begin()).out;
  std::ranges::copy(kBehind, std::to_chars(number, path.end() - kBehind.size(), process).ptr);
  const int directory = ::open(path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(dirent64) std::array<char, 4096> entries{};
  for (;;) {
    const long got = ::syscall(SYS_getdents64, directory, entries.data(), entries.size());
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const char* const entry = entries.data() + at;
      std::uint16_t length = 0;
      std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
      const std::string_view name = entry + offsetof(dirent64, d_name);
      pid_t thread = 0;
      std::from_chars(name.data(), name.data() + name.size(), thread);
      if (thread > 0) bury_if_ended(thread);
      at += length;
    }
  }
  ::close(directory);
}

Result<Attacher> Attacher::make() {
  DIAPAUSE_TRY(set_handler(&handle));
  Attacher made(std::make_unique<pid_t>(0));
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event.sigev_value.sival_ptr = made.process_.get();
  event._sigev_un._tid = ::gettid();
  if (::timer_create(CLOCK_MONOTONIC, &event, &made.timer_) == 0) return made;
  const int error = errno;
  made.process_.reset();
  (void)set_handler(nullptr);
  return fail(os_error("making a timer for the freeze", error));
}

Attacher::~Attacher() {
  if (process_ == nullptr) return;
  ::timer_delete(timer_);
  (void)set_handler(nullptr);
}

// The kernel begins the interrupted call again when the signal handler returns.
Status Attacher::attach(pid_t process, pid_t thread) {
  *process_ = process;
  const itimerspec looks{{0, kLook_ns}, {0, kLook_ns}}, never{};
  if (::timer_settime(timer_, 0, &looks, nullptr) != 0)
    return fail(os_error("setting a timer for the freeze", errno));
  Status attached = process::attach(thread);
  ::timer_settime(timer_, 0, &never, nullptr);
  return attached;
}

}  // namespace diapause::process
