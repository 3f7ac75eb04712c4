// The records of a job, for processes that begin to use verbs: they will hear of others by the
// numbers that these had before.
#pragma once

#include <span>

#include "base/result.hpp"
#include "fabric/control.hpp"

namespace diapause::fabric {

// Gives the records of the whole job to whoever reads this memory, behind what it publishes itself.
// Returns whether that worked; errno says why not.
bool give(int memory, Page& page, std::span<const Record> records);

// A board is memory like that which a process that uses verbs shares with its agent. Process 1 of
// the job inherits its descriptor, so processes find it among the descriptors of the job.
class Board {
 public:
  // A board on which nobody looks.
  Board() = default;
  static Result<Board> make();
  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  // While a pause holds the job, whoever begins to use verbs waits.
  void set_held(bool is_held);
  Status show(std::span<const Record> records);

 private:
  int memory_ = -1;
  Page* page_ = nullptr;
};

}  // namespace diapause::fabric
