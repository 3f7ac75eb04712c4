// Simulates one run of a job with failures.
//
// The job works and takes checkpoints by its pattern; some become durable only later, when work in
// the background ends. After a failure nothing happens for the downtime. Then the newest checkpoint
// that survives is restored at the cost of the shallowest level that has it, which repairs every
// loss, and the work continues. A failure during a restart begins it again. Failures during
// downtime and in the queue cost no additional time, but what they destroy is lost.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulate/job.hpp"

namespace diapause::simulate {

enum class Activity { compute, slowed, checkpoint, restart, down, queue };
inline constexpr std::size_t kActivities = 6;
std::string_view activity_name(Activity activity);  // a name like "checkpoint"

// An event of the run, for figures and files.
struct Event {
  double begin_s = 0;
  double end_s = 0;                // equal to begin_s for failures
  std::string_view what = {};      // name of an activity, or "failure", "holds", "lost"
  int level = 0;                   // for checkpoints and restarts
  std::string_view of_class = {};  // for failures
  std::uint32_t first_node = 0;
  std::uint32_t nodes = 0;
};

struct History {
  std::array<double, kActivities> seconds{};
  double wall_s = 0;
  double work_s = 0;    // useful work
  double rework_s = 0;  // computed and lost
  double behind_s = 0;  // work in the background, in parallel with all that
  std::array<double, kActivities> joules{};
  double behind_j = 0;
  std::vector<std::uint64_t> failures;     // for each class, and last for the record
  std::vector<std::uint64_t> checkpoints;  // for each level
  std::vector<std::uint64_t> restarts;     // for each level that was restored from
  std::uint64_t from_scratch = 0;          // starts for which nothing had survived; no restarts
  std::size_t nodes_remembered = 0;
  std::vector<Event> events;

  double total_joules() const;
};

// Simulates one run. The first `most_events` events are kept. The job and the machine must have
// passed check().
History simulate(const Job& job, const Machine& machine, std::uint64_t seed,
                 std::size_t most_events = 0);

}  // namespace diapause::simulate
