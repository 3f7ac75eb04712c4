#include "policy/retention.hpp"

#include <bit>
#include <utility>

namespace diapause::policy {

std::vector<std::uint32_t> kept_levels(std::span<const RetentionCandidate> newest_first,
                                       const config::Settings& settings) {
  std::array<std::uint32_t, 5> kept{};
  bool has_exact = false;
  std::vector<std::uint32_t> masks;
  masks.reserve(newest_first.size());
  for (const RetentionCandidate& version : newest_first) {
    const int deepest = std::bit_width(version.levels & 0b11110U) - 1;
    std::uint32_t mask = 0;
    for (int level = 1; level <= deepest; ++level) {
      std::uint32_t& count = kept[static_cast<std::size_t>(level)];
      if (count < settings.level(level).keep) {
        ++count;
        mask |= 1U << level;
      }
    }
    if (deepest == 4 && version.is_exact && !std::exchange(has_exact, true)) mask |= 1U << 4;
    masks.push_back(mask);
  }
  return masks;
}

}  // namespace diapause::policy
