#include "policy/deadline.hpp"

#include <algorithm>

namespace diapause::policy {
namespace {

constexpr double kSafety = 1.5;
constexpr double kGuessedSeconds = 2;
// The rates assumed for a node, by level.
constexpr std::array<double, 5> kGuessedBytesPerSecond = {0, 500e6, 100e6, 100e6, 100e6};
constexpr double kMostShare = 0.25;

double scaled(double seconds, std::uint64_t from_bytes, std::uint64_t to_bytes) {
  if (to_bytes <= from_bytes) return seconds;
  return seconds * static_cast<double>(to_bytes) /
         static_cast<double>(std::max<std::uint64_t>(from_bytes, 1));
}

}  // namespace

void CheckpointTimes::learn(int level, std::uint64_t bytes, double seconds) {
  if (level < 1 || level > 4) return;
  std::optional<Seen>& seen = seen_[static_cast<std::size_t>(level)];
  const double before = seen ? scaled(seen->seconds, seen->bytes, bytes) : seconds;
  seen = Seen{bytes, std::max(seconds, (before + seconds) / 2)};
}

double CheckpointTimes::expect(int level, std::uint64_t bytes, std::uint64_t nodes) const {
  const auto index = static_cast<std::size_t>(level);
  if (const auto& seen = seen_[index]) return kSafety * scaled(seen->seconds, seen->bytes, bytes);
  const double node_bytes =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(nodes, 1));
  return kGuessedSeconds + node_bytes / kGuessedBytesPerSecond[index];
}

int deepest_in_time(const LevelSeconds& levels, double left_s) {
  for (int level = 4; level > 1; --level) {
    const auto& seconds = levels[static_cast<std::size_t>(level)];
    if (seconds && *seconds <= left_s) return level;
  }
  return 1;
}

double lead_s(const LevelSeconds& levels, double whole_s) {
  const int level = deepest_in_time(levels, kMostShare * whole_s);
  return levels[static_cast<std::size_t>(level)].value_or(0);
}

bool must_begin(double left_s, double lead_s, double next_s) {
  return left_s <= lead_s + 2 * next_s;
}

}  // namespace diapause::policy
