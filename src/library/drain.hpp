// The rest of a capture, behind the program's back.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "config/settings.hpp"
#include "sys/thread.hpp"

namespace diapause::library {

// Runs one piece of work at a time, in a thread of its own that gives way to the program's. All calls from one thread.
class Drain {
 public:
  ~Drain() { wait(); }

  // Waits for the piece before. In the calling thread if there is no other to be had. `work` must not throw.
  void start(const config::AsyncSettings& async, const std::function<void()>& work);

  bool is_done() const;
  void wait();
  bool wait(double at_most_s);  // whether it is done

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace diapause::library
