// The gate stops threads at verbs, and lets them go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace diapause::fabric {

// Every verb that is not on the way of messages passes it. Closed, it holds all that come, until it
// is opened.
class Gate {
 public:
  static Gate& of_process();
  void enter();
  void leave();
  // Returns when nobody is inside.
  void close();
  void open();
  bool is_closed() const { return closed_.load(std::memory_order_relaxed) != 0; }
  // Waits until the gate is open, or a moment.
  void wait();

 private:
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> closed_{0};
};

// The gate does not close while a passage lives.
class Passage {
 public:
  explicit Passage(Gate& gate) : gate_(gate) { gate_.enter(); }
  ~Passage() { gate_.leave(); }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

 private:
  Gate& gate_;
};

// A lock for posting and completing messages. It takes one atomic instruction if nobody holds it. A
// thread that finds it taken while the gate is closed sleeps until the gate is opened. It is plain
// memory, so a restart finds it as it was.
class Lock {
 public:
  bool try_lock() { return (word_.fetch_or(1, std::memory_order_acquire) & 1) == 0; }
  void lock() {
    if (!try_lock()) lock_slowly();
  }
  // Callers that hold another lock already, or have closed the gate, use this, because they must
  // not sleep at it.
  void lock_awake();
  void unlock() { word_.store(0, std::memory_order_release); }

 private:
  [[gnu::cold]] void lock_slowly();
  std::atomic<std::uint32_t> word_{0};
};

class Holding {
 public:
  explicit Holding(Lock& lock) : lock_(lock) { lock_.lock(); }
  // Takes over a lock that the caller has.
  Holding(Lock& lock, std::adopt_lock_t) : lock_(lock) {}
  ~Holding() { lock_.unlock(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  Lock& lock_;
};

}  // namespace diapause::fabric
