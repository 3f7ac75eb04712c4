// Tells what is known beforehand about the end of the allocation, and about the checkpoints that
// fit before it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "engine/job/context.hpp"
#include "policy/deadline.hpp"

namespace diapause::engine {

// Returns the numbers of the signals that mean that the job has to stop.
std::set<int> stop_signals(const config::DeadlineSettings& settings);

// Returns how long the allocation lasts from now on; nullopt if that is not known.
std::optional<double> seconds_to_end(const config::DeadlineSettings& settings);

// Returns the expected duration of a checkpoint of `bytes` over all ranks, for each level that this
// job can have.
policy::LevelSeconds expected_seconds(const Context& context, const policy::CheckpointTimes& times,
                                      std::uint64_t bytes);

}  // namespace diapause::engine
