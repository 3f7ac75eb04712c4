#include "cli/quantities.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace diapause::cli {
namespace {

struct UnitName {
  std::string_view name;
  double factor;
};

constexpr UnitName kTimes[] = {{"", 1},       {"s", 1},        {"min", 60},
                               {"m", 60},     {"h", 3600},     {"d", 86400},
                               {"w", 604800}, {"y", 31557600}, {"ms", 1e-3}};
constexpr UnitName kSizes[] = {{"", 1},        {"B", 1},        {"kB", 1e3},     {"MB", 1e6},
                               {"GB", 1e9},    {"TB", 1e12},    {"PB", 1e15},    {"EB", 1e18},
                               {"KiB", 1024.}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                               {"PiB", 0x1p50}};

std::optional<double> read_quantity(std::string_view text, std::span<const UnitName> units,
                                    double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const UnitName& known : units) {
    if (known.name == unit && value >= 0 && value * known.factor <= most)
      return value * known.factor;
  }
  return std::nullopt;
}

// Returns the number with at most so many digits, and with zeros where {:g} has an exponent.
std::string digits_text(double value, int digits) {
  const std::string rounded = fmt::format("{:.{}g}", value, digits);
  double shown = 0;
  std::from_chars(rounded.data(), rounded.data() + rounded.size(), shown);
  return fmt::format("{}", shown);
}

}  // namespace

Result<double> parse_time_s(std::string_view text) {
  const auto value = read_quantity(text, kTimes, 1e12);
  if (value) return *value;
  return fail(Code::argument,
              fmt::format("'{}' is no time: write 90s, 15min, 3h, 2.5d, 1w or 15y", text));
}

Result<double> parse_size_bytes(std::string_view text) {
  const auto value = read_quantity(text, kSizes, 1e21);
  if (value) return *value;
  return fail(Code::argument, fmt::format("'{}' is no size: write 500MB, 2GiB or 10PB", text));
}

Result<double> parse_amount(std::string_view text) {
  const auto value = read_quantity(text, std::span(kTimes, 1), 1e18);
  if (value) return *value;
  return fail(Code::argument, fmt::format("'{}' is no number of 0 or more", text));
}

std::string duration_text(double seconds, int digits) {
  if (!std::isfinite(seconds)) return "never";
  for (const UnitName& unit : {UnitName{"y", 31557600}, {"d", 86400}, {"h", 3600}, {"min", 60}}) {
    if (seconds >= 2 * unit.factor)
      return fmt::format("{} {}", digits_text(seconds / unit.factor, digits), unit.name);
  }
  return seconds >= 0.1 || seconds == 0 ? digits_text(seconds, digits) + " s"
                                        : digits_text(seconds * 1e3, digits) + " ms";
}

}  // namespace diapause::cli
