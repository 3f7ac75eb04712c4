// Runs the rest of a capture in the background.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "config/settings.hpp"
#include "sys/thread.hpp"

namespace diapause::library {

// Runs one piece of work at a time in a thread of its own, which gives way to the program's
// threads. All calls come from one thread.
class BackgroundTask {
 public:
  ~BackgroundTask() { wait(); }

  // Waits for the previous piece, then starts `work`, which must not throw. It runs in the calling
  // thread if no other can be started.
  void start(const config::AsyncSettings& async, const std::function<void()>& work);

  bool is_done() const;
  void wait();
  bool wait(double at_most_s);  // returns whether it is done

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace diapause::library
