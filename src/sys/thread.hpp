// Threads of the library's own, and where they may run.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/result.hpp"

namespace diapause::sys {

// A thread in which no signal is delivered: the program's handlers run in the program's threads. Joined on destruction;
// `work` must not throw and must come to its end by then.
class Thread {
 public:
  static Result<Thread> start(std::function<void()> work);

  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;
  ~Thread();

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

// Cores that the scheduler may give the calling thread (sched_getaffinity); at least 1.
unsigned usable_cores();

}  // namespace diapause::sys
