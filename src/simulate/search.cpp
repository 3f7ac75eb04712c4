#include "simulate/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace diapause::simulate {
namespace {

constexpr double kFirstStep = 2;
constexpr double kLastStep = 1.08;  // neighbours closer than this differ little in cost
// The seeds for the result differ from those of the search by this number.
constexpr std::uint64_t kOther = 1 << 30;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the pattern with one of its numbers changed; number 0 is the work between checkpoints.
model::Pattern changed(model::Pattern pattern, std::size_t which, double factor) {
  if (which == 0) {
    pattern.work_s *= factor;
    return pattern;
  }
  double& every = pattern.every[which];
  const double next = std::round(every * factor);
  every = std::max(1.0, next == every ? every + (factor > 1 ? 1 : -1) : next);
  return pattern;
}

class Search {
 public:
  Search(const model::Pattern& start, const Play& play, std::uint64_t seed)
      : play_(play), seed_(seed), best_(start), value_(mean_of(play(start, seed))) {}

  model::Pattern run() {
    for (double step = kFirstStep; step > kLastStep; step = std::sqrt(step)) {
      bool helps = true;
      for (int round = 0; round < 8 && helps; ++round) {
        helps = false;
        for (std::size_t which = 0; which < best_.every.size(); ++which) {
          helps = walk(which, step) || walk(which, 1 / step) || helps;
        }
      }
    }
    return best_;
  }

 private:
  // Moves on in one direction while that helps.
  bool walk(std::size_t which, double factor) {
    bool helps = false;
    while (true) {
      const model::Pattern candidate = changed(best_, which, factor);
      if (candidate.work_s == best_.work_s && candidate.every == best_.every) return helps;
      const double value = mean_of(play_(candidate, seed_));
      if (!(value < value_)) return helps;
      best_ = candidate;
      value_ = value;
      helps = true;
    }
  }

  const Play& play_;
  const std::uint64_t seed_;
  model::Pattern best_;
  double value_;
};

}  // namespace

Found best_pattern(const model::Pattern& start, const Play& play, std::uint64_t seed) {
  Found found;
  found.pattern = Search(start, play, seed).run();
  const std::vector<double> before = play(start, seed + kOther);
  const std::vector<double> after = play(found.pattern, seed + kOther);
  std::vector<double> saved;
  for (std::size_t i = 0; i < before.size(); ++i) saved.push_back(1 - after[i] / before[i]);
  found.value = estimate(after);
  found.start_value = estimate(before);
  found.saved = estimate(saved);
  return found;
}

}  // namespace diapause::simulate
