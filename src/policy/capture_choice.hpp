// How a region leaves the program's memory, by what earlier captures of it have cost. The model and the measurements
// behind its constants: docs/decisions/0009-capture-strategies.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/settings.hpp"

namespace diapause::policy {

enum class CaptureMethod {
  copy,           // all of it, while the program waits
  copy_on_write,  // all of it, behind write protection
  incremental,    // what has changed, while the program waits
  background      // all of it, without protection: the program has promised not to write
};
const char* capture_method_name(CaptureMethod method);  // "copy-on-write"

// What is known of one region.
struct RegionFacts {
  std::uint64_t bytes = 0;
  CaptureMethod present = CaptureMethod::copy;  // what the last capture took
  std::optional<double> changed;                // part (0..1) of it that was found changed between captures
  std::string copy_on_write_refusal;            // why it cannot be taken; empty: it can
  std::string tracking_refusal;                 // why the kernel cannot tell what changed; empty: it can
};

// What was measured in this process, in seconds. None: not tried yet.
struct CaptureCosts {
  std::optional<double> copy_s_per_byte;
  std::optional<double> arm_s_per_byte;    // write protection
  std::optional<double> drain_s_per_byte;  // the copy in the background
  std::optional<double> fault_s;           // one stopped write
  std::optional<double> scan_s_per_byte;   // asking what changed
  std::uint64_t fault_bytes = 1;           // what one stopped write has copied
  bool core_to_spare = true;               // the background copy has a core of its own
};

struct CaptureChoice {
  CaptureMethod method = CaptureMethod::copy;
  std::string reason;  // for people
};

// Below, no method can save more than a wake-up costs.
inline constexpr std::uint64_t kSmallBytes = std::uint64_t{4} << 20;

// Whether the choice depends on what is refused: it may be costly to find out. Where it does not, it is to copy.
inline bool asks_for_refusals(config::CaptureStrategy strategy, const RegionFacts& region) {
  if (strategy == config::CaptureStrategy::automatic) return region.bytes >= kSmallBytes && region.changed;
  return strategy != config::CaptureStrategy::copy;
}

// A forced strategy is taken where it is not refused. Otherwise the method whose expected cost to the program is least;
// the present one stays unless another costs clearly less. Without history: copy.
CaptureChoice choose_capture(config::CaptureStrategy strategy, const RegionFacts& region, const CaptureCosts& costs);

}  // namespace diapause::policy
