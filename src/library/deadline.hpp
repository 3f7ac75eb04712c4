// Stopping in time: when a rank was signalled or the allocation ends, all ranks learn it at the same snapshot call, and
// what checkpoint still fits. policy/deadline.hpp decides; this gathers what it decides from and tells everybody.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/job/context.hpp"
#include "policy/deadline.hpp"
#include "sys/signals.hpp"

namespace diapause::library {

// The reason why the program has to stop. Equal on all ranks.
struct Stop {
  int signal = 0;          // its number; 0: the end of the allocation is near
  std::uint32_t rank = 0;  // that got the signal
};
std::string in_words(const Stop& stop);  // "SIGTERM on rank 3", "the allocation ends"

class Deadline {
 public:
  // The ranks agree at least so often, if they have anything to watch for.
  static constexpr double kAgreeEvery_s = 1;

  // Takes the signals over, on all ranks those that rank 0's settings name; none are watched without `signals`. Rank 0
  // notes stops in the file `note_path`, for `diapause run`; empty: there is none. Collective.
  Status open(engine::Context& context, std::unique_ptr<sys::StopSignals> signals, std::string note_path);

  // Returns whether there is anything to watch for. Equal on all ranks.
  bool watches() const { return watches_; }

  // At an agreed call: the level to take now, which is `due` unless the program has to stop. `next_s`: until the next
  // agreed call; `bytes`: protected on this rank. Collective.
  Result<int> level_now(engine::Context& context, double next_s, std::uint64_t bytes, int due);

  // A checkpoint of `bytes` of all ranks took so long to reach `level`.
  void learn(int level, std::uint64_t bytes, double seconds) { times_.learn(level, bytes, seconds); }

  // Whether the next checkpoint is the last, and note_checkpoint() waits for what becomes of it. Equal on all ranks.
  bool is_last() const { return stop_.has_value() && !noted_; }

  // After a checkpoint, whatever became of it. The reason to stop, if this was the first one since that was decided.
  std::optional<Stop> note_checkpoint(engine::Context& context, std::uint64_t version, int level_reached);

  // Why the program has to stop; none: it need not. That it has asked is noted, too: it ends on purpose from now on.
  std::optional<Stop> ask(engine::Context& context);

 private:
  policy::LevelSeconds expected(const engine::Context& context, std::uint64_t bytes) const;
  std::uint64_t wish(const engine::Context& context, double next_s, std::uint64_t bytes) const;
  double seconds_left(int signal, double since_s) const;
  void note(engine::Context& context, const std::string& line);

  std::unique_ptr<sys::StopSignals> signals_;
  std::string note_path_;        // empty but on rank 0
  std::optional<double> end_s_;  // rank 0: when the allocation ends, by the monotonic clock
  double whole_s_ = 0;           // rank 0: what was left of it at the start
  double agreed_s_ = 0;          // the last agreed call, by the monotonic clock
  policy::CheckpointTimes times_;
  std::optional<Stop> stop_;
  bool watches_ = false;
  bool noted_ = false;
  bool told_ = false;
};

// Returns how many nodes a level needs at least.
std::size_t nodes_needed(const config::Settings& settings, int level);

}  // namespace diapause::library
