#include "engine/job/allocation.hpp"

#include "policy/schedule.hpp"
#include "sys/process.hpp"
#include "sys/signals.hpp"

namespace diapause::engine {

std::set<int> stop_signals(const config::DeadlineSettings& settings) {
  std::set<int> numbers;
  for (const std::string& name : settings.signals) {
    if (const auto number = sys::signal_number(name)) numbers.insert(*number);
  }
  return numbers;
}

std::optional<double> seconds_to_end(const config::DeadlineSettings& settings) {
  if (settings.in_s > 0) return settings.in_s;
  if (settings.at_unix_s == 0) return std::nullopt;
  return static_cast<double>(settings.at_unix_s) - static_cast<double>(sys::unix_time_ns()) * 1e-9;
}

policy::LevelSeconds expected_seconds(const Context& context, const policy::CheckpointTimes& times,
                                      std::uint64_t bytes) {
  const std::size_t nodes = context.topology.node_names.size();
  policy::LevelSeconds levels;
  for (int level = 1; level <= 4; ++level) {
    const bool has_tier = level < 4 || context.tiers.find(config::TierKind::global) != nullptr;
    if (!has_tier || nodes < policy::nodes_needed(context.settings, level)) continue;
    levels[static_cast<std::size_t>(level)] = times.expect(level, bytes, nodes);
  }
  return levels;
}

}  // namespace diapause::engine
