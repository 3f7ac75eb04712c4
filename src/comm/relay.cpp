#include "comm/relay.hpp"

#include <chrono>
#include <thread>

namespace diapause::comm {

void Relay::engage() {
  const std::lock_guard lock(mutex_);
  is_engaged_ = true;
}

void Relay::carry_out(const Step& step) {
  std::unique_lock lock(mutex_);
  if (!is_engaged_) {
    constexpr std::chrono::microseconds kPause(50);
    while (!step()) std::this_thread::sleep_for(kPause);
    return;
  }
  step_ = &step;
  changed_.notify_all();
  changed_.wait(lock, [&] { return step_ == nullptr; });
}

void Relay::advance() {
  // The thread usually posts its next step this soon after the last one.
  constexpr std::chrono::microseconds kNextComesWithin(100);
  std::unique_lock lock(mutex_);
  while (step_ != nullptr && (*step_)()) {
    step_ = nullptr;
    changed_.notify_all();
    changed_.wait_for(lock, kNextComesWithin, [&] { return step_ != nullptr; });
  }
}

}  // namespace diapause::comm
