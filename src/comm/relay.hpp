// Lets a thread communicate where MPI belongs to the program's thread: what it has to do is done there, bit by bit,
// whenever the program's thread comes by. Neither side ever waits for another rank in the other's place.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace diapause::comm {

class Relay {
 public:
  // A piece of communication. Called again and again, each time without waiting, until it says that it is done.
  using Step = std::function<bool()>;

  // From here on, carry_out() leaves its steps to advance(); before, it takes them itself.
  void engage();

  // Returns when `step` is done. By one thread at a time.
  void carry_out(const Step& step);

  // Goes on with what there is to do, in the calling thread. Stays no longer than it gets on.
  void advance();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const Step* step_ = nullptr;
  bool is_engaged_ = false;
};

}  // namespace diapause::comm
