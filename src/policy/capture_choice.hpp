// Chooses how a region is copied out of the program's memory, from the cost of earlier captures.
// docs/decisions/0009-capture-strategies.md has the model and the measurements behind its
// constants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/settings.hpp"

namespace diapause::policy {

enum class CaptureMethod {
  copy,           // everything, while the program waits
  copy_on_write,  // everything, behind write protection
  incremental,    // changed blocks, while the program waits
  background      // everything, without protection: the program has promised not to write
};
const char* capture_method_name(CaptureMethod method);  // such as "copy-on-write"

// The facts that are known about a region.
struct RegionFacts {
  std::uint64_t bytes = 0;
  CaptureMethod present = CaptureMethod::copy;  // the method of the last capture
  std::optional<double> changed;  // fraction (0..1) of it that was found changed between captures
  // The reason why copy-on-write is impossible; empty if it is possible.
  std::string copy_on_write_refusal;
  std::string tracking_refusal;  // the reason why the kernel cannot track changes; empty if it can
};

// Costs measured in this process, in seconds; nullopt if not measured yet.
struct CaptureCosts {
  std::optional<double> copy_s_per_byte;
  std::optional<double> arm_s_per_byte;    // setting write protection
  std::optional<double> drain_s_per_byte;  // the copy in the background
  std::optional<double> fault_s;           // one stopped write
  std::optional<double> scan_s_per_byte;   // for finding out what has changed
  std::uint64_t fault_bytes = 1;           // bytes copied for one stopped write
  bool core_to_spare = true;               // whether the background copy has a core of its own
};

struct CaptureChoice {
  CaptureMethod method = CaptureMethod::copy;
  std::string reason;  // for users
};

// Below this size, no method can save more than a wake-up costs.
inline constexpr std::uint64_t kSmallBytes = std::uint64_t{4} << 20;

// Returns whether the choice depends on the refusals, which may be costly to find out. If not, the
// choice is to copy.
inline bool asks_for_refusals(config::CaptureStrategy strategy, const RegionFacts& region) {
  if (strategy == config::CaptureStrategy::automatic)
    return region.bytes >= kSmallBytes && region.changed;
  return strategy != config::CaptureStrategy::copy;
}

// Returns a configured strategy unless it is refused. Otherwise returns the method whose expected
// cost to the program is lowest; the present method is kept unless another costs clearly less.
// Without history the choice is to copy.
CaptureChoice choose_capture(config::CaptureStrategy strategy, const RegionFacts& region,
                             const CaptureCosts& costs);

}  // namespace diapause::policy
