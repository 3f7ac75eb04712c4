#include "model/levels.hpp"

#include <array>
#include <cmath>

namespace diapause::model {
namespace {

// The outcome of a stretch of time in which failures can occur.
struct Outcome {
  Times times;          // expected time spent in it
  double succeeds = 1;  // probability
  // Probability that a failure of the class of levels[i] ends it.
  std::array<double, kMostLevels> left{};
};

double total_rate(const std::vector<Level>& levels) {
  double rate = 0;
  for (const Level& level : levels) rate += level.failures_per_s;
  return rate;
}

// Returns E[min(X, length)] for the time X to the next failure.
double expected_before_failure(double rate, double length_s) {
  return rate > 0 ? -std::expm1(-rate * length_s) / rate : length_s;
}

// Extends an outcome by another uninterrupted stretch of `length_s`; returns its expected duration.
double extend(Outcome& outcome, const std::vector<Level>& levels, double rate, double length_s) {
  const double spent_s = outcome.succeeds * expected_before_failure(rate, length_s);
  for (std::size_t i = 0; i < levels.size(); ++i)
    outcome.left[i] += levels[i].failures_per_s * spent_s;
  outcome.succeeds *= std::exp(-rate * length_s);
  return spent_s;
}

// Returns the outcome of work with a checkpoint at its end.
Outcome segment(const std::vector<Level>& levels, const Level& ends_with, double work_s) {
  const double rate = total_rate(levels);
  Outcome outcome;
  outcome.times.computing_s = extend(outcome, levels, rate, work_s);
  outcome.times.slowed_s = extend(outcome, levels, rate, ends_with.slowed * ends_with.behind_s);
  outcome.times.checkpointing_s = extend(outcome, levels, rate, ends_with.blocked_s);
  outcome.times.behind_s = outcome.succeeds * expected_before_failure(rate, ends_with.behind_s);
  return outcome;
}

// Returns the outcome of `first`, followed by `second` if it succeeds.
Outcome then(const Outcome& first, const Outcome& second) {
  Outcome all = first;
  all.times += first.succeeds * second.times;
  all.succeeds *= second.succeeds;
  for (std::size_t i = 0; i < kMostLevels; ++i) all.left[i] += first.succeeds * second.left[i];
  return all;
}

// Returns the outcome of `count` equal stretches, one after the other while they succeed. `count`
// need not be whole.
Outcome repeated(const Outcome& one, double count) {
  Outcome all;
  if (count <= 0) return all;
  const double fails = -std::log(one.succeeds) * count;
  // The sum 1 + q + q^2 + ... of `count` terms.
  const double step = 1 - one.succeeds;
  const double times_begun = step > 0 ? -std::expm1(-fails) / step : count;
  all.times = times_begun * one.times;
  all.succeeds = std::exp(-fails);
  for (std::size_t i = 0; i < kMostLevels; ++i) all.left[i] = times_begun * one.left[i];
  return all;
}

// Interpolates the cost linearly between two counts of blocks if there is no block in the middle.
Outcome between(const Outcome& one, const Outcome& two, double share_of_two) {
  Outcome all;
  all.times = (1 - share_of_two) * one.times;
  all.times += share_of_two * two.times;
  all.succeeds = (1 - share_of_two) * one.succeeds + share_of_two * two.succeeds;
  for (std::size_t i = 0; i < kMostLevels; ++i) {
    all.left[i] = (1 - share_of_two) * one.left[i] + share_of_two * two.left[i];
  }
  return all;
}

// The work that is repeated after a restart: a number of blocks of the shallower levels, whose
// checkpoints protect it.
struct Again {
  const Outcome* block = nullptr;  // null: work without checkpoints
  double work_s = 0;               // useful work in the block
  double period_s = 0;             // time between two checkpoints of the recovering level
};

// Returns the outcome of a recovery: downtime, restart and the work that had been done while the
// checkpoint became durable, repeated until it succeeds or a failure of a class deeper than that of
// levels[own] ends it. The checkpoint is one of levels[from], and includes level 1.
Outcome recovery(const std::vector<Level>& levels, std::size_t own, std::size_t from,
                 const Again& again) {
  const double rate = total_rate(levels);
  const Level& level = levels[levels[own].number == 1 ? own : from];
  double again_s = (1 - level.slowed) * level.behind_s;
  double restart_s = level.restart_s;
  if (again.block && from > own && again_s > again.period_s) {
    // Before the deep checkpoint is durable, the next one of levels[own] is; the one before that
    // was taken a period earlier.
    again_s = again.period_s;
    restart_s = levels[own].restart_s;
  }
  Outcome once;
  once.times.down_s = levels[own].downtime_s;
  once.times.restarting_s = extend(once, levels, rate, restart_s);
  if (again.block && again_s > 0) {
    once = then(once, repeated(*again.block, again_s / again.work_s));
  } else {
    once.times.computing_s = extend(once, levels, rate, again_s);
  }
  double ends = once.succeeds;  // probability that an attempt is not repeated
  for (std::size_t i = own + 1; i < levels.size(); ++i) ends += once.left[i];
  Outcome all;
  all.times = (1 / ends) * once.times;
  all.succeeds = once.succeeds / ends;
  for (std::size_t i = own + 1; i < levels.size(); ++i) all.left[i] = once.left[i] / ends;
  return all;
}

// Returns the outcome of a stretch that is restarted after each failure of the class of levels[own]
// from which a recovery is possible.
Outcome closed(const Outcome& stretch, const Outcome& recovers, std::size_t own) {
  const double fails = stretch.left[own];
  double ends = stretch.succeeds;
  double recovery_left = 0;
  for (std::size_t i = own + 1; i < kMostLevels; ++i) {
    ends += stretch.left[i];
    recovery_left += recovers.left[i];
  }
  ends += fails * recovery_left;
  Outcome all;
  all.times = stretch.times;
  all.times += fails * recovers.times;
  all.times = (1 / ends) * all.times;
  all.succeeds = stretch.succeeds / ends;
  for (std::size_t i = own + 1; i < kMostLevels; ++i) {
    all.left[i] = (stretch.left[i] + fails * recovers.left[i]) / ends;
  }
  return all;
}

}  // namespace

double Times::joules(const Powers& powers) const {
  return (computing_s + slowed_s) * powers.compute_w + checkpointing_s * powers.checkpoint_w +
         restarting_s * powers.restart_w + down_s * powers.idle_w + behind_s * powers.behind_w;
}

Times& Times::operator+=(const Times& more) {
  computing_s += more.computing_s;
  slowed_s += more.slowed_s;
  checkpointing_s += more.checkpointing_s;
  restarting_s += more.restarting_s;
  down_s += more.down_s;
  behind_s += more.behind_s;
  return *this;
}

Times operator*(double factor, Times times) {
  times.computing_s *= factor;
  times.slowed_s *= factor;
  times.checkpointing_s *= factor;
  times.restarting_s *= factor;
  times.down_s *= factor;
  times.behind_s *= factor;
  return times;
}

double Pattern::period_work_s(std::size_t level) const {
  double work = work_s;
  for (std::size_t i = 0; i <= level; ++i) work *= every[i];
  return work;
}

double Pattern::work_of_all_s() const {
  return every.empty() ? work_s : period_work_s(every.size() - 1);
}

Cost cost_of(const std::vector<Level>& levels, const Pattern& pattern) {
  const std::size_t count = levels.size();
  // blocks[s][e] begins behind a checkpoint of levels[s] and ends with one of levels[e].
  std::array<std::array<Outcome, kMostLevels>, kMostLevels> blocks;
  std::array<Outcome, kMostLevels> recovers_from;
  for (std::size_t start = 0; start < count; ++start)
    recovers_from[start] = recovery(levels, 0, start, {});
  for (std::size_t end = 0; end < count; ++end) {
    const Outcome work = segment(levels, levels[end], pattern.work_s);
    for (std::size_t start = 0; start < count; ++start) {
      blocks[start][end] = closed(work, recovers_from[start], 0);
    }
  }
  for (std::size_t own = 1; own < count; ++own) {
    const std::size_t inner = own - 1;
    const double every = pattern.every[own];
    const Outcome inner_block = blocks[inner][inner];
    std::array<Outcome, kMostLevels> last;  // the work from an inner checkpoint to a deeper one
    for (std::size_t end = own; end < count; ++end) last[end] = blocks[inner][end];
    const Outcome middle = repeated(inner_block, every - 2);
    const Again again{&inner_block, pattern.period_work_s(inner), pattern.period_work_s(own)};
    for (std::size_t start = own; start < count; ++start) {
      const Outcome recovers = recovery(levels, own, start, again);
      const Outcome first = then(blocks[start][inner], middle);
      for (std::size_t end = own; end < count; ++end) {
        const Outcome two = then(first, last[end]);
        const Outcome all = every >= 2 ? two : between(blocks[start][end], two, every - 1);
        blocks[start][end] = closed(all, recovers, own);
      }
    }
  }
  return {pattern.work_of_all_s(), blocks[count - 1][count - 1].times};
}

std::vector<Level> only_present(const std::vector<Level>& levels,
                                const std::vector<bool>& present) {
  std::vector<Level> kept;
  double passed_on = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    passed_on += levels[i].failures_per_s;
    if (!present[i]) continue;
    kept.push_back(levels[i]);
    kept.back().failures_per_s = passed_on;
    passed_on = 0;
  }
  return kept;
}

}  // namespace diapause::model
