#include "sys/worker_thread.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <system_error>

namespace diapause::sys {
namespace {

std::string apply(const WorkerSettings& settings) {
  std::string refused;
  if (settings.cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (*settings.cpu < CPU_SETSIZE) CPU_SET(*settings.cpu, &cpus);
    if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
      refused += fmt::format("it cannot be pinned to processor {}: {}; ", *settings.cpu,
                             std::generic_category().message(errno));
    }
  }
  // On Linux a thread has a niceness of its own.
  const auto thread_id = static_cast<id_t>(::syscall(SYS_gettid));
  if (settings.nice != 0 && ::setpriority(PRIO_PROCESS, thread_id, settings.nice) != 0) {
    refused += fmt::format("it cannot be niced: {}; ", std::generic_category().message(errno));
  }
  return refused;
}

}  // namespace

Result<WorkerThread> WorkerThread::start(const WorkerSettings& settings, std::function<void()> body,
                                         std::string* refused) {
  std::promise<std::string> applied;
  std::future<std::string> result = applied.get_future();
  // A thread inherits the mask: blocked before it starts, no signal can slip in.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<WorkerThread> worker = fail(Code::io, "");
  try {
    worker = WorkerThread(std::thread([settings, body = std::move(body), applied = std::move(applied)]() mutable {
      applied.set_value(apply(settings));
      body();
    }));
  } catch (const std::system_error& error) {
    worker = fail(Code::io, fmt::format("the system gives no thread: {}", error.what()));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (worker) *refused = result.get();
  return worker;
}

WorkerThread& WorkerThread::operator=(WorkerThread&& other) noexcept {
  if (thread_.joinable()) thread_.join();
  thread_ = std::move(other.thread_);
  return *this;
}

WorkerThread::~WorkerThread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace diapause::sys
