// Lets a background thread communicate where only the program's thread may call MPI: the background
// thread's communication is carried out step by step in the program's thread, whenever that thread
// calls in. The program's thread waits for another rank on behalf of the other only as long as it
// says.
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

  // Continues pending steps in the calling thread. Returns when there are none, or when they make
  // no more progress and `patience_s` seconds have passed since the call.
  void advance(double patience_s = 0);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const Step* step_ = nullptr;
  bool is_engaged_ = false;
};

}  // namespace diapause::comm
