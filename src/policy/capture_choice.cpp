#include "policy/capture_choice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace diapause::policy {
namespace {

// Another method must be cheaper by this factor, so that noise does not make the choice oscillate.
constexpr double kClearlyFaster = 0.8;

// Defaults for costs that this process has not measured yet. They are on the slow side of what was
// measured elsewhere, so that a trial corrects them.
constexpr double kArmSPerByte = 3.5e-11;
constexpr double kFaultS = 15e-6;  // in addition to the copy, which it replaces
constexpr double kScanSPerByte = 1e-11;
// The cost of the first write to each page of tracked memory. It falls into the program's own time
// and cannot be measured here.
constexpr double kTrackedPageS = 1.6e-6;
constexpr double kPageBytes = 4096;

struct Price {
  CaptureMethod method;
  double seconds;
};

double copy_price(const RegionFacts& region, const CaptureCosts& costs) {
  return static_cast<double>(region.bytes) * *costs.copy_s_per_byte;
}

double copy_on_write_price(const RegionFacts& region, const CaptureCosts& costs) {
  const auto bytes = static_cast<double>(region.bytes);
  const auto unit = static_cast<double>(costs.fault_bytes);
  const double fault_s = costs.fault_s.value_or(kFaultS + unit * *costs.copy_s_per_byte);
  const double drain_s = bytes * costs.drain_s_per_byte.value_or(*costs.copy_s_per_byte);
  return bytes * costs.arm_s_per_byte.value_or(kArmSPerByte) +
         *region.changed * bytes / unit * fault_s + (costs.core_to_spare ? 0 : drain_s);
}

double incremental_price(const RegionFacts& region, const CaptureCosts& costs) {
  const auto bytes = static_cast<double>(region.bytes);
  const double changed = *region.changed * bytes;
  return bytes * costs.scan_s_per_byte.value_or(kScanSPerByte) + changed * *costs.copy_s_per_byte +
         changed / kPageBytes * kTrackedPageS;
}

CaptureChoice forced(CaptureMethod method, std::string_view name) {
  CaptureChoice choice{method, "capture.strategy is \""};
  choice.reason.append(name).append("\"");
  return choice;
}

CaptureChoice cheapest(const RegionFacts& region, const CaptureCosts& costs) {
  std::vector<Price> prices = {{CaptureMethod::copy, copy_price(region, costs)}};
  if (region.copy_on_write_refusal.empty()) {
    prices.push_back({CaptureMethod::copy_on_write, copy_on_write_price(region, costs)});
  }
  if (region.tracking_refusal.empty()) {
    prices.push_back({CaptureMethod::incremental, incremental_price(region, costs)});
  }
  auto best = std::ranges::min_element(prices, {}, &Price::seconds);
  const auto present = std::ranges::find(prices, region.present, &Price::method);
  if (present != prices.end() && best->seconds > kClearlyFaster * present->seconds) best = present;
  std::string reason = fmt::format("{:.0f} % changed; expected", 100 * *region.changed);
  const char* separator = " ";
  for (const Price& price : prices) {
    reason += fmt::format("{}{} {:.1f} ms", separator, capture_method_name(price.method),
                          1e3 * price.seconds);
    separator = ", ";
  }
  return {best->method, reason};
}

}  // namespace

const char* capture_method_name(CaptureMethod method) {
  switch (method) {
    case CaptureMethod::copy:
      return "copy";
    case CaptureMethod::copy_on_write:
      return "copy-on-write";
    case CaptureMethod::incremental:
      return "incremental";
    case CaptureMethod::background:
      return "background";
  }
  return "";
}

CaptureChoice choose_capture(config::CaptureStrategy strategy, const RegionFacts& region,
                             const CaptureCosts& costs) {
  const std::string_view name = config::capture_strategy_name(strategy);
  switch (strategy) {
    case config::CaptureStrategy::copy:
      return forced(CaptureMethod::copy, name);
    case config::CaptureStrategy::copy_on_write:
      if (region.copy_on_write_refusal.empty()) return forced(CaptureMethod::copy_on_write, name);
      return {CaptureMethod::copy, "no copy-on-write: " + region.copy_on_write_refusal};
    case config::CaptureStrategy::incremental:
      if (region.tracking_refusal.empty()) return forced(CaptureMethod::incremental, name);
      return {CaptureMethod::incremental, "changes found by checksum: " + region.tracking_refusal};
    case config::CaptureStrategy::automatic:
      break;
  }
  if (region.bytes < kSmallBytes) return {CaptureMethod::copy, "small"};
  if (!region.changed || !costs.copy_s_per_byte)
    return {CaptureMethod::copy, "nothing is known of its changes yet"};
  return cheapest(region, costs);
}

}  // namespace diapause::policy
