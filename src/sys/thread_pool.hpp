// Has a small pool of threads that work on one task at a time, together with the calling thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "sys/thread.hpp"

namespace diapause::sys {

class ThreadPool {
 public:
  // `size` >= 1 includes the caller of run(). The other threads are started when there is work for
  // them. If some cannot be started, the rest do the work.
  explicit ThreadPool(unsigned size) : size_(size) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // Calls `piece(i)` for every i below `pieces`, in several threads at once, and returns when all
  // calls have returned. `piece` must not throw. There may be one call at a time.
  void run(std::uint64_t pieces, const std::function<void(std::uint64_t)>& piece);

  unsigned size() const { return size_; }

 private:
  void start_helpers();
  void help();
  void work();

  const unsigned size_;
  std::vector<Thread> helpers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t round_ = 0;  // number of the call of run(); every helper joins each round once
  std::size_t busy_ = 0;     // helpers that have not finished this round
  bool ends_ = false;
  const std::function<void(std::uint64_t)>* piece_ = nullptr;
  std::uint64_t pieces_ = 0;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace diapause::sys
