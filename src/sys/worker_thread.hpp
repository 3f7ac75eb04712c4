// A thread that stays out of the program's way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"

namespace diapause::sys {

struct WorkerSettings {
  int nice = 0;                      // 0 to 19
  std::optional<std::uint32_t> cpu;  // where it runs; none: anywhere
};

// Runs `body` in a thread of its own, in which all signals are blocked, until it returns; the destructor waits for
// that.
class WorkerThread {
 public:
  // What of the settings the system refuses is said in `refused`; the thread runs without it.
  static Result<WorkerThread> start(const WorkerSettings& settings, std::function<void()> body, std::string* refused);
  WorkerThread(WorkerThread&&) noexcept = default;
  WorkerThread& operator=(WorkerThread&& other) noexcept;  // waits for the thread it had
  ~WorkerThread();

 private:
  explicit WorkerThread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

}  // namespace diapause::sys
