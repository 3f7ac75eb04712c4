// A worker in the background for tasks that nobody waits for. It does them one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "config/settings.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {

// A thread that gives way to the program's threads. It starts with the first piece of work. All
// calls come from one thread.
class BackgroundWorker {
 public:
  explicit BackgroundWorker(const config::AsyncSettings& async) : async_(async) {}
  ~BackgroundWorker();  // waits until all work is done

  // Adds work. It is done in the calling thread if no other can be started. Exceptions from it are
  // dropped.
  void post(std::function<void()> work);
  // Returns when all work is done.
  void wait();

 private:
  void run();

  const config::AsyncSettings async_;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // the first one is in progress
  bool ends_ = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace diapause::engine
