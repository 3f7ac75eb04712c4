// Threads of the library's own, and where they may run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

  double cpu_s();  // processor time that it has used

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

// Makes the calling thread give way to the program's: its niceness (0 to 19), and the processor it stays on, if one is
// given. What the system refuses costs nothing else.
Status give_way(int nice, std::optional<std::uint32_t> cpu);

// Cores that the scheduler may give the calling thread (sched_getaffinity); at least 1.
unsigned usable_cores();

}  // namespace diapause::sys
