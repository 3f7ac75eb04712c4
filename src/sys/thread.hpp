// Has the library's own threads, and says where they may run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/result.hpp"

namespace diapause::sys {

// In this thread no signal is delivered, because the program's handlers must run in the program's
// threads. The destructor joins it. `work` must not throw and must have a reason to end by then.
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

// Makes the calling thread give way to the program's threads: sets its niceness (0 to 19) and, if
// given, the processor it stays on. If the system refuses one of the two, the other still applies.
Status give_way(int nice, std::optional<std::uint32_t> cpu);

// Returns the niceness of a thread of any process (0 to 19; below 0, it goes before others), and
// nothing if there is no such thread.
std::optional<int> niceness(std::int64_t thread);

// Returns the number of cores that the scheduler may give the calling thread (sched_getaffinity),
// at least 1.
unsigned usable_cores();

}  // namespace diapause::sys
