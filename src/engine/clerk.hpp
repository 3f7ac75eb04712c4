// What nobody waits for, one piece after the other.
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
class Clerk {
 public:
  explicit Clerk(const config::AsyncSettings& async) : async_(async) {}
  ~Clerk();  // when all is done

  // In the calling thread if there is no other to be had. What throws is given up: nobody waits for it.
  void post(std::function<void()> work);
  // Until all is done.
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
