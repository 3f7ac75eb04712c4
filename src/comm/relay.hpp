// Lets a background thread communicate where only the program's thread may call MPI: the background
// thread's communication is carried out step by step in the program's thread, whenever that thread
// calls in. Neither thread ever waits for another rank on behalf of the other.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace diapause::comm {

class Relay {
 public:
  // A piece of communication. It is called repeatedly, must not block, and returns true when it is
  // done.
  using Step = std::function<bool()>;

  // From this call on, carry_out() leaves its steps to advance(); before, it executes them itself.
  void engage();

  // Returns when `step` is done. One thread at a time may call this.
  void carry_out(const Step& step);

  // Continues pending steps in the calling thread, and returns when they make no more progress.
  void advance();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const Step* step_ = nullptr;
  bool is_engaged_ = false;
};

}  // namespace diapause::comm
