// Threads of C++ that take work from a queue: mutexes, condition variables, atomics, futures,
// exceptions that cross threads, and storage of each thread.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSteps = 60, kThreads = 4, kOrders = 40, kDone = 7;
constexpr auto kPause = std::chrono::milliseconds(10);

class Workshop {
 public:
  Workshop() {
    for (int i = 0; i < kThreads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Workshop() {
    {
      const std::scoped_lock lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& one : workers_) one.join();
  }

  std::future<unsigned long> order(unsigned long value) {
    std::packaged_task<unsigned long()> task([this, value] { return make(value); });
    std::future<unsigned long> made = task.get_future();
    {
      const std::scoped_lock lock(mutex_);
      orders_.push_back(std::move(task));
    }
    changed_.notify_one();
    return made;
  }
  unsigned long count() const { return count_; }

 private:
  unsigned long make(unsigned long value) {
    thread_local std::map<std::string, unsigned long> seen;
    ++seen[std::to_string(value)];
    ++count_;
    if (value % 7 == 3) throw std::runtime_error(std::to_string(value * 3));
    return value * 31 % 10007;
  }
  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_closed_ || !orders_.empty(); });
      if (orders_.empty()) return;
      std::packaged_task<unsigned long()> task = std::move(orders_.front());
      orders_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<unsigned long()>> orders_;
  bool is_closed_ = false;
  std::atomic<unsigned long> count_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace

int main() {
  const char* const gate = std::getenv("TRANSPARENT_GATE");
  auto workshop = std::make_unique<Workshop>();
  unsigned long sum = 1;
  for (int i = 0; i < kSteps; ++i) {
    std::vector<std::future<unsigned long>> orders;
    for (unsigned long k = 0; k < kOrders; ++k) orders.push_back(workshop->order(sum % 101 + k));
    for (auto& one : orders) {
      try {
        sum += one.get();
      } catch (const std::runtime_error& failure) {
        sum += std::stoul(failure.what());
      }
    }
    std::cout << i << " " << sum << " " << workshop->count() << std::endl;
    std::this_thread::sleep_for(kPause);
    const bool waits = gate != nullptr && i == kSteps * 3 / 4;
    while (waits && !std::filesystem::exists(gate)) std::this_thread::sleep_for(kPause);
  }
  workshop.reset();
  return kDone;
}
