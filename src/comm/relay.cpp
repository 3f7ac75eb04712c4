#include "comm/relay.hpp"

#include <chrono>
#include <thread>

namespace diapause::comm {
namespace {

constexpr std::chrono::microseconds kPause(50);

}  // namespace

void Relay::engage() {
  const std::lock_guard lock(mutex_);
  is_engaged_ = true;
}

void Relay::carry_out(const Step& step) {
  std::unique_lock lock(mutex_);
  if (!is_engaged_) {
    while (!step()) std::this_thread::sleep_for(kPause);
    return;
  }
  step_ = &step;
  changed_.notify_all();
  changed_.wait(lock, [&] { return step_ == nullptr; });
}

void Relay::advance(double patience_s) {
  using Clock = std::chrono::steady_clock;
  // The thread usually posts its next step this soon after the last one.
  constexpr std::chrono::microseconds kNextComesWithin(100);
  const auto end = Clock::now() + std::chrono::duration<double>(patience_s);
  std::unique_lock lock(mutex_);
  while (step_ != nullptr) {
    if ((*step_)()) {
      step_ = nullptr;
      changed_.notify_all();
      changed_.wait_for(lock, kNextComesWithin, [&] { return step_ != nullptr; });
    } else if (Clock::now() < end) {
      std::this_thread::sleep_for(kPause);
    } else {
      return;
    }
  }
}

}  // namespace diapause::comm
