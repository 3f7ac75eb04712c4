// Combines the meters of a node into its energy over time. One meter sees the whole node and is
// slow, such as a management controller; others see a part of it and are fast, such as the counters
// of processors. The slow one gives the total, and the fast ones say what is used when
// (docs/energy.md, "Two meters of a node"). The code is pure.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "energy/series.hpp"

namespace diapause::energy {

// Has the power of a node as a line over that of the parts, P = rest_w + per_part * P(parts), which
// is fitted to the mean powers of windows of time. It is known beforehand approximately what a watt
// of the parts adds to the node, because power supplies and fans take their share. The quarters of
// the windows tell how far the node is off the line: they show what goes up and down within a
// window, and what the slow meter tells late.
class PartsFit {
 public:
  static constexpr std::size_t kQuarters = 4;

  // All powers are means.
  struct Powers {
    double parts_w = 0, node_w = 0;
  };
  struct Window {
    Powers whole;
    std::array<Powers, kQuarters> quarters;
  };
  void add(const Window& window);
  bool is_known() const { return windows_.size() >= kLeastWindows; }

  double watts(double parts_w) const { return rest_w_ + per_part_ * parts_w; }
  double per_part() const { return per_part_; }
  double rest_w() const { return rest_w_; }
  // Returns how far the mean power over so many seconds may be off that of the line, where a
  // quarter has `quarter_s`.
  double off_w(double parts_w, double seconds, double quarter_s) const;

 private:
  static constexpr std::size_t kLeastWindows = 4;
  static constexpr std::size_t kMostWindows = 64;  // older ones say nothing of the present program
  void fit();
  double scatter_w() const;

  std::deque<Window> windows_;
  double mean_parts_w_ = 0, rest_w_ = 0, per_part_ = 0;
  double scatter_w_ = 0,
         per_part_off_ = 0;  // standard deviations of quarters about the line, and of the slope
};

class NodeCurve {
 public:
  // Returns what the parts have used together in a stretch of time.
  using Parts = std::function<Amount(double from_s, double to_s)>;

  // The slow meter changes every `update_s` seconds.
  explicit NodeCurve(double update_s) : window_s_(kUpdatesOfWindow * update_s) {}

  // Learns from the windows that are complete by now. It is called after each reading.
  void learn(const Series& node, const Parts& parts);
  // Returns what the slow meter alone says until enough is learnt, and of stretches in which one of
  // the meters has a gap. Over long times the result always agrees with the slow meter, and
  // stretches that adjoin add up.
  Amount between(const Series& node, const Parts& parts, double from_s, double to_s) const;
  const PartsFit& fit() const { return fit_; }

 private:
  static constexpr double kUpdatesOfWindow = 16;
  // Returns nullopt if one of the meters has a gap.
  static std::optional<PartsFit::Powers> powers(const Series& node, const Parts& parts,
                                                double from_s, double to_s);
  std::optional<double> joules_at(const Series& node, const Parts& parts, double time_s) const;

  double window_s_;
  std::uint64_t learnt_ = 0;  // windows, of which the first begins with the first reading
  PartsFit fit_;
};

}  // namespace diapause::energy
