#include "governor/clock_meter.hpp"

#include <fmt/core.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

// The text is like "event=0x01".
std::optional<std::uint64_t> event_at(sys::Kernel& kernel, const std::string& path) {
  constexpr std::string_view kPrefix = "event=0x";
  const std::string text = sys::read_value(kernel, path).value_or("");
  if (!text.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t event = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + kPrefix.size(), end, event, 16);
  return error == std::errc() && at == end ? std::optional(event) : std::nullopt;
}

}  // namespace

ClockMeter ClockMeter::open(sys::Kernel& kernel, const std::string& sysfs,
                            const std::vector<std::uint32_t>& cpus) {
  ClockMeter meter;
  const std::string unit = sysfs + "/bus/event_source/devices/msr";
  const auto type = sys::read_number(kernel, unit + "/type");
  const auto aperf = event_at(kernel, unit + "/events/aperf");
  const auto mperf = event_at(kernel, unit + "/events/mperf");
  if (!type || !aperf || !mperf) return meter;
  for (const std::uint32_t cpu : cpus) {
    if (meter.pairs_.size() == kMostCpus) break;
    const auto open_one = [&](std::uint64_t event, const char* name) {
      return sys::PerfCounter::open(kernel, static_cast<std::uint32_t>(*type), event,
                                    static_cast<int>(cpu),
                                    fmt::format("{} of processor {}", name, cpu));
    };
    auto at_clock = open_one(*aperf, "aperf");
    auto at_base = open_one(*mperf, "mperf");
    if (!at_clock || !at_base) return {};
    meter.pairs_.push_back({std::move(*at_clock), std::move(*at_base)});
  }
  return meter;
}

std::optional<ClockMeter::Counts> ClockMeter::read() const {
  if (pairs_.empty()) return std::nullopt;
  Counts sum;
  for (const Pair& pair : pairs_) {
    const auto at_clock = pair.aperf.count();
    const auto at_base = pair.mperf.count();
    if (!at_clock || !at_base) return std::nullopt;
    sum.at_clock += *at_clock;
    sum.at_base += *at_base;
  }
  return sum;
}

std::optional<double> clock_ratio(const std::optional<ClockMeter::Counts>& from,
                                  const std::optional<ClockMeter::Counts>& to) {
  if (!from || !to || to->at_base <= from->at_base || to->at_clock < from->at_clock)
    return std::nullopt;
  return static_cast<double>(to->at_clock - from->at_clock) /
         static_cast<double>(to->at_base - from->at_base);
}

}  // namespace diapause::governor
