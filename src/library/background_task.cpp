#include "library/background_task.hpp"

#include <algorithm>
#include <chrono>

namespace diapause::library {

void BackgroundTask::start(const config::AsyncSettings& async, const std::function<void()>& work) {
  wait();
  is_running_ = true;
  auto thread = sys::Thread::start([this, async, work] {
    // A refusal is reported by the engine's thread.
    (void)sys::give_way(static_cast<int>(async.nice), async.cpu);
    work();
    const std::lock_guard lock(mutex_);
    is_running_ = false;
    changed_.notify_all();
  });
  if (thread) {
    thread_.emplace(std::move(*thread));
    return;
  }
  work();
  is_running_ = false;
}

bool BackgroundTask::is_done() const {
  const std::lock_guard lock(mutex_);
  return !is_running_;
}

void BackgroundTask::wait() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_running_; });
  }
  thread_.reset();
}

bool BackgroundTask::wait(double at_most_s) {
  // Limited so that the sum with the present time is valid.
  const std::chrono::duration<double> limit(std::min(at_most_s, 1e6));
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return !is_running_; });
}

}  // namespace diapause::library
