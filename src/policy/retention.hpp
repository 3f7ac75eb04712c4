// Decides which versions are kept.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "config/settings.hpp"

namespace diapause::policy {

// A published version. Spans of them begin with the newest.
struct RetentionCandidate {
  std::uint32_t levels;  // bit (1 << level) for each level reached
  bool is_exact = true;  // whether its data in the global tier, if any, are exact
};

// Returns, for each version, the levels that it is still kept for (bit (1 << level); 0 = delete it
// everywhere). A version is kept at level L if it is among the newest keep[L] versions whose
// deepest level is at least L. Its level-1 image stays while any of the bits 1..3 is set, and its
// copy, parity or global image while bit 2, 3 or 4 is set. The newest exact version of level 4 is
// kept as well, so that one can always return to values that no codec has changed.
std::vector<std::uint32_t> kept_levels(std::span<const RetentionCandidate> newest_first,
                                       const config::Settings& settings);

}  // namespace diapause::policy
