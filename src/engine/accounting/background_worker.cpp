#include "engine/accounting/background_worker.hpp"

namespace diapause::engine {
namespace {

void perform(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    // The usual reason is lack of memory. The program continues without the result.
  }
}

}  // namespace

BackgroundWorker::~BackgroundWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void BackgroundWorker::post(std::function<void()> work) {
  if (!thread_) {
    auto thread = sys::Thread::start([this] { run(); });
    if (!thread) return perform(work);
    thread_.emplace(std::move(*thread));
  }
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void BackgroundWorker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty(); });
}

void BackgroundWorker::run() {
  // A refusal is reported by the engine's thread.
  (void)sys::give_way(static_cast<int>(async_.nice), async_.cpu);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()>& next = work_.front();  // stays valid while other work is added behind it
    lock.unlock();
    perform(next);
    lock.lock();
    work_.pop_front();
    if (work_.empty()) changed_.notify_all();
  }
}

}  // namespace diapause::engine
