#include "fabric/shim/gate.hpp"

#include <sched.h>

#include "sys/futex.hpp"

namespace diapause::fabric {
namespace {

constexpr double kLongWait_s = 3600;  // somebody wakes those who wait
constexpr int kSpins = 100;

}  // namespace

void Gate::enter() {
  for (;;) {
    inside_.fetch_add(1);
    if (closed_.load() == 0) return;
    leave();
    wait();
  }
}

void Gate::leave() {
  if (inside_.fetch_sub(1) == 1 && closed_.load() != 0) sys::wake_all(inside_);
}

void Gate::close() {
  closed_.store(1);
  for (std::uint32_t inside = inside_.load(); inside != 0; inside = inside_.load()) {
    sys::wait_while(inside_, inside, 1e-3);
  }
}

void Gate::open() {
  closed_.store(0);
  sys::wake_all(closed_);
}

void Gate::wait() {
  while (closed_.load() != 0) sys::wait_while(closed_, 1, kLongWait_s);
}

void Lock::lock_slowly() {
  Gate& gate = Gate::of_process();
  for (int spins = 0; !try_lock(); ++spins) {
    if (gate.is_closed()) {
      gate.wait();
    } else if (spins > kSpins) {
      ::sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }
}

void Lock::lock_awake() {
  for (int spins = 0; !try_lock(); ++spins) {
    if (spins > kSpins) {
      ::sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }
}

}  // namespace diapause::fabric
