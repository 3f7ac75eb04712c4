#include "sys/thread_pool.hpp"

namespace diapause::sys {

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  helpers_.clear();  // joins while the mutex still exists
}

void ThreadPool::run(std::uint64_t pieces, const std::function<void(std::uint64_t)>& piece) {
  if (size_ == 1 || pieces < 2) {
    for (std::uint64_t i = 0; i < pieces; ++i) piece(i);
    return;
  }
  start_helpers();
  {
    const std::lock_guard lock(mutex_);
    piece_ = &piece;
    pieces_ = pieces;
    next_ = 0;
    busy_ = helpers_.size();
    ++round_;
  }
  changed_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadPool::start_helpers() {
  if (!helpers_.empty()) return;
  for (unsigned i = 1; i < size_; ++i) {
    auto helper = Thread::start([this] { help(); });
    if (!helper) return;
    helpers_.push_back(std::move(*helper));
  }
}

void ThreadPool::help() {
  // run() counts on every helper in every round, also on one that starts late.
  std::uint64_t joined = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || round_ != joined; });
    if (ends_) return;
    joined = round_;
    lock.unlock();
    work();
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void ThreadPool::work() {
  for (std::uint64_t i = next_++; i < pieces_; i = next_++) (*piece_)(i);
}

}  // namespace diapause::sys
