// Stops the program in time. If a rank received a signal or the allocation ends, all ranks learn at
// the same snapshot call that they must stop, and which checkpoint still fits. policy/deadline.hpp
// decides; this class provides its input and tells all ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/job/context.hpp"
#include "policy/deadline.hpp"
#include "sys/signals.hpp"

namespace diapause::library {

// Says why the program has to stop. It is equal on all ranks.
struct Stop {
  int signal = 0;          // its number; 0: the end of the allocation is near
  std::uint32_t rank = 0;  // the rank that received the signal
};
std::string in_words(const Stop& stop);  // such as "SIGTERM on rank 3" or "the allocation ends"

class Deadline {
 public:
  // Longest time between two agreements if there is anything to watch for.
  static constexpr double kAgreeEvery_s = 1;

  // Handles on all ranks the signals that rank 0's settings name; without `signals` none are
  // handled. Rank 0 notes stops for `diapause run` in the file `note_path`; if the path is empty,
  // it does not. Collective.
  Status open(const engine::Context& context, std::unique_ptr<sys::StopSignals> signals,
              std::string note_path);

  // Returns whether there is anything to watch for. Equal on all ranks.
  bool watches() const { return watches_; }

  // Returns at an agreed call the level to take now, which is `due` unless the program has to stop.
  // `next_s` is the time until the next agreed call, and `bytes` are those protected on this rank.
  // Collective.
  Result<int> level_now(const engine::Context& context, double next_s, std::uint64_t bytes,
                        int due);

  // Records that a checkpoint of `bytes` over all ranks reached `level` in `seconds`.
  void learn(int level, std::uint64_t bytes, double seconds) {
    times_.learn(level, bytes, seconds);
  }

  // Returns whether the next checkpoint is the last one. If so, note_checkpoint() must be told its
  // final outcome. Equal on all ranks.
  bool is_last() const { return stop_.has_value() && !noted_; }

  // Returns the reason to stop if this was the first checkpoint since the decision to stop. It is
  // called after every checkpoint, whatever its outcome.
  std::optional<Stop> note_checkpoint(const engine::Context& context, std::uint64_t version,
                                      int level_reached);

  // Returns why the program has to stop; nullopt if it need not. The call is noted as well: from
  // then on the program ends on purpose.
  std::optional<Stop> ask(const engine::Context& context);

 private:
  policy::LevelSeconds expected(const engine::Context& context, std::uint64_t bytes) const;
  std::uint64_t wish(const engine::Context& context, double next_s, std::uint64_t bytes) const;
  double seconds_left(int signal, double since_s) const;
  void note(const engine::Context& context, const std::string& line);

  std::unique_ptr<sys::StopSignals> signals_;
  std::string note_path_;        // empty except on rank 0
  std::optional<double> end_s_;  // rank 0: when the allocation ends, by the monotonic clock
  double whole_s_ = 0;           // rank 0: time that was left of it at the start
  double agreed_s_ = 0;          // time of the last agreed call, by the monotonic clock
  policy::CheckpointTimes times_;
  std::optional<Stop> stop_;
  bool watches_ = false;
  bool noted_ = false;
  bool told_ = false;
};

}  // namespace diapause::library
