// One run of a job among failures.
//
// The job works, takes checkpoints by its pattern, and holds some of them only later, as work in the background ends.
// At a failure nothing happens for the downtime; then the newest checkpoint that survives is restored at the cost of
// the shallowest level that has it, every loss is healed by that, and the work goes on. A failure in a restart begins
// that again. Failures during downtime and in the queue cost no more time, but what they take is lost, too.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulate/job.hpp"

namespace diapause::simulate {

enum class Activity { compute, slowed, checkpoint, restart, down, queue };
inline constexpr std::size_t kActivities = 6;
std::string_view activity_name(Activity activity);  // "checkpoint"

// What happened, for pictures and files.
struct Event {
  double begin_s = 0;
  double end_s = 0;                // of failures: the same
  std::string_view what = {};      // name of an activity, or "failure", "holds", "lost"
  int level = 0;                   // of a checkpoint or restart
  std::string_view of_class = {};  // of a failure
  std::uint32_t first_node = 0;
  std::uint32_t nodes = 0;
};

struct History {
  std::array<double, kActivities> seconds{};
  double wall_s = 0;
  double work_s = 0;    // useful
  double rework_s = 0;  // computed and lost
  double behind_s = 0;  // work in the background, beside all that
  std::array<double, kActivities> joules{};
  double behind_j = 0;
  std::vector<std::uint64_t> failures;     // by class; the record's behind them
  std::vector<std::uint64_t> checkpoints;  // taken, by level
  std::vector<std::uint64_t> restarts;     // by level restored from
  std::uint64_t from_scratch = 0;          // nothing had survived
  std::size_t nodes_remembered = 0;
  std::vector<Event> events;

  double total_joules() const;
};

// `most_events`: so many are kept, from the beginning. The job and machine passed check().
History simulate(const Job& job, const Machine& machine, std::uint64_t seed, std::size_t most_events = 0);

}  // namespace diapause::simulate
