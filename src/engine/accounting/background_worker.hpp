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

// A thread that gives way to the program's, and is there from the first piece of work on. All calls from one thread.
class BackgroundWorker {
 public:
  explicit BackgroundWorker(const config::AsyncSettings& async) : async_(async) {}
  ~BackgroundWorker();  // waits until all is done

  // The work is done in the calling thread if no other can be started. Work that throws is given up.
  void post(std::function<void()> work);
  // Returns when all work is done.
  void wait();

 private:
  void run();

  const config::AsyncSettings async_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // the first is being done
  bool ends_ = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace diapause::engine
