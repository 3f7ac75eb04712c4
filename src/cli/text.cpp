#include "cli/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace diapause::cli {

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // A value that would be shown as 1024.0 becomes 1.0 of the next unit.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string bytes_or_dash(std::uint64_t bytes) { return bytes == 0 ? "-" : bytes_text(bytes); }

std::string time_text(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

namespace {

// Returns the value rounded to a multiple of a power of ten.
std::string at_place(double value, int place) {
  const double step = std::pow(10.0, place);
  const double rounded = std::round(value / step) * step;
  return fmt::format("{:.{}f}", rounded == 0 ? 0.0 : rounded, std::clamp(-place, 0, 9));
}

// Returns the decimal place of the last digit that is shown.
int place_of(double value, int digits) {
  return static_cast<int>(std::floor(std::log10(std::abs(value)))) - digits + 1;
}

int place_of_uncertainty(double off) {
  const double two_digits = off / std::pow(10.0, place_of(off, 2));
  return place_of(off, two_digits > 35.5 ? 1 : 2);
}

}  // namespace

std::string value_text(double value, double off, const char* unit) {
  if (!(off > 0)) return fmt::format("{:.2f} {}", value, unit);
  const int place = place_of_uncertainty(off);
  return fmt::format("{} +- {} {}", at_place(value, place), at_place(off, place), unit);
}

std::string to_the_digits_of(double value, double off, const char* unit) {
  if (!(off > 0)) return fmt::format("{:.2f} {}", value, unit);
  return fmt::format("{} {}", at_place(value, place_of_uncertainty(off)), unit);
}

std::string rounded_text(double value, int digits, const char* unit) {
  constexpr double kLeast = 1e-9;  // what rounding leaves of nothing is less
  const bool is_nothing = std::abs(value) < kLeast;
  return fmt::format("{} {}", is_nothing ? "0" : at_place(value, place_of(value, digits)), unit);
}

std::string levels_text(const format::Manifest& manifest) {
  std::vector<int> levels;
  for (int level = 1; level <= 4; ++level) {
    if (manifest.has_level(level)) levels.push_back(level);
  }
  return fmt::format("{}", fmt::join(levels, " "));
}

std::string numbers_text(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += first == last ? fmt::format("{}", numbers[first])
                          : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

namespace {

// Replaces the characters of UTF-8 that have no glyph: a terminal takes those from U+0080 to U+009F
// for commands, and others hide or reorder their neighbours.
void replace_hidden(std::string& text) {
  const auto is_in = [&](std::size_t at, unsigned char least, unsigned char most) {
    const auto byte = static_cast<unsigned char>(at < text.size() ? text[at] : 0);
    return byte >= least && byte <= most;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_control = is_in(i, 0xc2, 0xc2) && is_in(i + 1, 0x80, 0x9f);
    const bool is_format =
        (is_in(i, 0xe2, 0xe2) && is_in(i + 1, 0x80, 0x80) &&
         (is_in(i + 2, 0x8b, 0x8f) || is_in(i + 2, 0xa8, 0xae))) ||
        (is_in(i, 0xe2, 0xe2) && is_in(i + 1, 0x81, 0x81) && is_in(i + 2, 0xa0, 0xaf)) ||
        (is_in(i, 0xef, 0xef) && is_in(i + 1, 0xbb, 0xbb) && is_in(i + 2, 0xbf, 0xbf));
    if (is_control) text.replace(i, 2, "?");
    if (is_format) text.replace(i, 3, "?");
  }
}

}  // namespace

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
  replace_hidden(text);
  return text;
}

std::string printable_lines(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f; }, '?');
  replace_hidden(text);
  return text;
}

std::string Table::text(const std::string& indent) const {
  std::vector<std::vector<std::string>> lines;
  lines.emplace_back();
  for (const Column& column : columns_) lines.back().push_back(column.head);
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string one = indent;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) one += "  ";
      one += columns_[i].align == Align::right ? fmt::format("{:>{}}", line[i], widths[i])
                                               : fmt::format("{:<{}}", line[i], widths[i]);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

}  // namespace diapause::cli
