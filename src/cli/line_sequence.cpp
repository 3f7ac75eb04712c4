#include "cli/line_sequence.hpp"

#include <algorithm>
#include <iterator>

namespace diapause::cli {
namespace {

// Clocks are set meanwhile, and lines without numbers have only their times.
constexpr double kLeastHoleS = 1;
constexpr std::uint64_t kMostLines = 1'000'000'000;  // of a hole: more is no count

Hole hole_of(std::uint64_t lines, double seconds) { return {std::min(lines, kMostLines), seconds}; }

}  // namespace

void LineSequence::open(std::uint64_t incarnation, double unix_s) {
  opened_unix_s_[incarnation] = unix_s;
}

std::optional<Hole> LineSequence::add(const Line& line) {
  const auto [place, is_first] = last_.try_emplace(line.incarnation, line);
  const Line before = place->second;
  place->second = line;
  adjoins_ = false;
  nth_ = ++lines_[line.incarnation];
  if (is_first) {
    if (line.number.value_or(1) <= 1) return std::nullopt;
    const auto opened = opened_unix_s_.find(line.incarnation);
    const double from_s = opened == opened_unix_s_.end() ? line.from_unix_s : opened->second;
    return hole_of(*line.number - 1, std::max(0.0, line.from_unix_s - from_s));
  }
  const double seconds = std::max(0.0, line.from_unix_s - before.to_unix_s);
  if (line.number && before.number) {
    adjoins_ = *line.number == *before.number + 1;
    if (*line.number <= *before.number + 1) return std::nullopt;
    return hole_of(*line.number - *before.number - 1, seconds);
  }
  adjoins_ = seconds <= kLeastHoleS;
  return adjoins_ ? std::nullopt : std::optional(hole_of(1, seconds));
}

void StartEnds::open(std::uint64_t incarnation, double unix_s) {
  Start& start = starts_[incarnation];
  start.opened_unix_s = unix_s;
  start.told_to_unix_s = std::max(start.told_to_unix_s, unix_s);
}

void StartEnds::add_energy(std::uint64_t incarnation, double to_unix_s, bool is_last) {
  Start& start = starts_[incarnation];
  start.told_to_unix_s = to_unix_s;
  start.has_end = is_last;
}

void StartEnds::close(std::optional<std::uint64_t> incarnation, double unix_s) {
  if (incarnation) {
    starts_[*incarnation].closed_unix_s = unix_s;
  } else if (!starts_.empty()) {
    starts_.rbegin()->second.has_end = true;
  }
}

std::vector<StartEnds::OpenEnd> StartEnds::open_ends() const {
  std::vector<OpenEnd> open;
  for (auto at = starts_.begin(); at != starts_.end(); ++at) {
    const auto& [incarnation, start] = *at;
    if (start.has_end) continue;
    OpenEnd end{incarnation, std::nullopt, start.closed_unix_s.has_value()};
    const auto next = std::next(at);
    std::optional<double> until = start.closed_unix_s;
    if (!until && next != starts_.end() && next->second.opened_unix_s > 0)
      until = next->second.opened_unix_s;
    if (until && start.told_to_unix_s > 0)
      end.seconds = std::max(0.0, *until - start.told_to_unix_s);
    open.push_back(end);
  }
  return open;
}

}  // namespace diapause::cli
