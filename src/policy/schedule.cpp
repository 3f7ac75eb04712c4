#include "policy/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::policy {
namespace {

constexpr std::size_t kDeepest = 4;
constexpr double kWaitForPace_s = 0.1;

}  // namespace

std::size_t nodes_needed(const config::Settings& settings, int level) {
  if (level == 2) return 2;
  return level == 3 ? settings.parity + std::size_t{1} : 1;
}

Schedule::Schedule(const config::Settings& settings) : is_paced_(settings.auto_schedule.is_on) {
  for (std::size_t level = 1; level <= kDeepest; ++level)
    intervals_[level] = settings.levels[level].interval;
}

bool Schedule::any_interval() const {
  if (is_paced_) return true;
  return std::ranges::any_of(intervals_, [](const config::Interval& interval) {
    return interval.seconds > 0 || interval.calls > 0;
  });
}

bool Schedule::tick() {
  ++call_;
  const bool by_time =
      is_paced_ || std::ranges::any_of(intervals_, [](const config::Interval& interval) {
        return interval.seconds > 0;
      });
  return call_ >= next_agreement_ && (by_time || agree_every_s_ > 0);
}

void Schedule::follow(const Pace& pace) {
  if (!is_paced_ || pace.number == pace_.number) return;
  if (pace_.number == 0) since_ = pace.since;
  pace_ = pace;
}

void Schedule::agree_every(double seconds) { agree_every_s_ = seconds; }

double Schedule::until_next_s() const {
  return call_s_.value_or(0) * static_cast<double>(next_agreement_ - call_);
}

int Schedule::calls_due() const {
  for (std::size_t level = kDeepest; level >= 1; --level) {
    if (intervals_[level].calls > 0 && call_ - last_call_[level] >= intervals_[level].calls) {
      return static_cast<int>(level);
    }
  }
  return 0;
}

int Schedule::time_due(double now_s) const {
  if (is_paced_)
    return pace_.number != 0 && now_s - last_s_[1] >= pace_.every_s ? pace_.next_level(since_) : 0;
  for (std::size_t level = kDeepest; level >= 1; --level) {
    if (intervals_[level].seconds > 0 && now_s - last_s_[level] >= intervals_[level].seconds) {
      return static_cast<int>(level);
    }
  }
  return 0;
}

std::optional<double> Schedule::seconds_left(double now_s) const {
  if (is_paced_)
    return pace_.number != 0 ? pace_.every_s - (now_s - last_s_[1]) : 2 * kWaitForPace_s;
  std::optional<double> least;
  for (std::size_t level = 1; level <= kDeepest; ++level) {
    if (intervals_[level].seconds <= 0) continue;
    const double left = intervals_[level].seconds - (now_s - last_s_[level]);
    least = std::min(left, least.value_or(left));
  }
  return least;
}

// Returns the time moved forward. When the clock steps back, the elapsed part of every interval is
// kept, so that no level waits longer than its interval because of that.
double Schedule::forward(double now_s) {
  if (!std::isfinite(now_s)) return agreed_s_;
  const double step = now_s - agreed_s_;
  if (step < 0) {
    for (double& last : last_s_) last += step;
    agreed_s_ = now_s;
  }
  return now_s;
}

// Updates the estimated duration of calls. Slower calls replace it at once, because they make
// levels late; faster ones move it by half the difference.
void Schedule::learn(double now_s) {
  if (call_ > agreed_call_) {
    const double seen_s = (now_s - agreed_s_) / static_cast<double>(call_ - agreed_call_);
    call_s_ = std::max(seen_s, (call_s_.value_or(seen_s) + seen_s) / 2);
  }
  agreed_s_ = now_s;
  agreed_call_ = call_;
}

void Schedule::plan(double now_s) {
  std::uint64_t stride = 1;
  std::optional<double> ahead_s;
  if (const auto left_s = seconds_left(now_s)) ahead_s = *left_s / 2;
  if (agree_every_s_ > 0) ahead_s = std::min(agree_every_s_, ahead_s.value_or(agree_every_s_));
  if (ahead_s && call_s_) {
    const auto most = static_cast<double>(std::min(call_, kMaxStride));
    // If calls are too short for the clock, only the limits count: 0/0 and x/0 both become `most`.
    const double calls = *call_s_ > 0 ? *ahead_s / *call_s_ : most;
    stride = static_cast<std::uint64_t>(std::clamp(calls, 1.0, std::max(1.0, most)));
  }
  next_agreement_ = call_ + stride;
}

int Schedule::decide(double now_s) {
  now_s = forward(now_s);
  learn(now_s);
  plan(now_s);
  return std::max(time_due(now_s), calls_due());
}

void Schedule::taken(int level, double now_s) {
  if (level <= 0) return;
  now_s = forward(now_s);
  const auto deepest = std::min(static_cast<std::size_t>(level), kDeepest);
  for (std::size_t covered = 1; covered <= deepest; ++covered) {
    last_s_[covered] = now_s;
    last_call_[covered] = call_;
    since_[covered] = 0;
  }
  for (std::size_t deeper = deepest + 1; deeper <= kDeepest; ++deeper) ++since_[deeper];
  // The duration of the checkpoint says nothing about calls.
  agreed_s_ = now_s;
  agreed_call_ = call_;
  plan(now_s);
}

void Schedule::taken_at_own_time(int level, double now_s) {
  if (level <= 0) return;
  taken(level, now_s);
  next_agreement_ = call_ + 1;
}

void Schedule::follow(const Times& of_root) {
  last_s_ = of_root.last_s;
  agreed_s_ = of_root.agreed_s;
}

}  // namespace diapause::policy
