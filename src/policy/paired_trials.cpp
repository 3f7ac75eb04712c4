#include "policy/paired_trials.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::policy {
namespace {

constexpr double kWorthChanging = 0.01;  // a share of the value without the change

// Returns Student's t for a one-sided error of 1/3 %, at the look after so many pairs.
double student_t(std::size_t pairs) { return pairs >= 16 ? 3.146 : pairs >= 8 ? 3.806 : 6.741; }

bool is_look(std::size_t pairs) { return pairs == 4 || pairs == 8 || pairs >= PairedTrials::kMost; }

}  // namespace

void PairedTrials::add(double without, double with) {
  if (pairs_.size() == kMost) pairs_.erase(pairs_.begin());
  pairs_.push_back({without, with});
  if (is_look(pairs_.size()) || answer_ == Answer::saves) answer_ = look();
}

auto PairedTrials::look() const -> Answer {
  const auto count = static_cast<double>(pairs_.size());
  double saved = 0, without = 0, squares = 0;
  for (const Pair& pair : pairs_) {
    saved += (pair.without - pair.with) / count;
    without += std::abs(pair.without) / count;
  }
  for (const Pair& pair : pairs_) squares += std::pow(pair.without - pair.with - saved, 2);
  const double half = student_t(pairs_.size()) * std::sqrt(squares / (count - 1) / count);
  if (saved - half > 0 && saved > kWorthChanging * without) return Answer::saves;
  if (saved + half < kWorthChanging * without) return Answer::does_not;
  return pairs_.size() >= kMost ? Answer::cannot_be_told : Answer::open;
}

void PairedTrials::forget() {
  pairs_.clear();
  answer_ = Answer::open;
}

}  // namespace diapause::policy
