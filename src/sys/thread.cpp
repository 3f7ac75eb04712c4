#include "sys/thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>
#include <system_error>

namespace diapause::sys {

Result<Thread> Thread::start(std::function<void()> work) {
  // A new thread inherits the signal mask of the thread that starts it.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(os_error("cannot start a thread", error));
  return Thread(std::move(thread));
}

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

double Thread::cpu_s() {
  clockid_t clock{};
  timespec time{};
  if (::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0) ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Status give_way(int nice, std::optional<std::uint32_t> cpu) {
  Status result;
  // On Linux, each thread has a niceness of its own.
  if (nice != 0 &&
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice) != 0) {
    result = fail(os_error("cannot set the niceness of a thread", errno));
  }
  if (!cpu) return result;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (*cpu < CPU_SETSIZE) CPU_SET(*cpu, &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) == 0) return result;
  return fail(os_error("cannot pin a thread to processor " + std::to_string(*cpu), errno));
}

std::optional<int> niceness(std::int64_t thread) {
  errno = 0;  // -1 is also a niceness
  const int found = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
  if (found == -1 && errno != 0) return std::nullopt;
  return found;
}

unsigned usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // The call fails on machines with more than 1024 cores, where the set would have to be larger.
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return std::max(1U, static_cast<unsigned>(CPU_COUNT(&cores)));
}

}  // namespace diapause::sys
