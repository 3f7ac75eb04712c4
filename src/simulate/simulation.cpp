#include "simulate/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>

#include "simulate/fate.hpp"
#include "simulate/random.hpp"

namespace diapause::simulate {
namespace {

constexpr std::array<std::string_view, kActivities> kActivityNames = {
    "compute", "slowed", "checkpoint", "restart", "down", "queue"};

struct Version {
  double work_s = 0;        // useful work that was done when it was captured
  std::uint64_t count = 0;  // number of checkpoints in the pattern, up to this one
  std::size_t level = 0;    // index of its level
  double holds_s = 0;       // time from which it is durable at its level
  double shallow_s = 0;     // the same at level 1
};

class Simulation {
 public:
  Simulation(const Job& job, const Machine& machine, std::uint64_t seed, std::size_t most_events)
      : job_(job),
        machine_(machine),
        fate_(machine, Random(seed).next()),
        bursts_(machine.contention, Random(seed ^ 0x5851f42d4c957f2dU).next()),
        random_(Random(seed ^ 0x14057b7ef767814fU).next()),
        most_events_(most_events) {
    run_.failures.resize(machine.classes.size() + 1);
    run_.checkpoints.resize(job.levels.size());
    run_.restarts.resize(job.levels.size());
    std::uint64_t product = 1;
    for (const double every : job.pattern.every) {
      product *= static_cast<std::uint64_t>(every);
      periods_.push_back(product);
    }
    newest_.resize(job.levels.size());
    behind_ends_s_.resize(job.levels.size());
    allocation_ends_s_ = machine.allocation_s;
  }

  History play() {
    while (!is_over()) {
      const Step step = work();
      if (step == Step::done) break;
      if (step == Step::failed || !checkpoint()) recover();
    }
    finish();
    return std::move(run_);
  }

 private:
  enum class Step { target, done, failed };

  bool is_over() const { return now_s_ >= job_.horizon_s || done_s_ >= job_.work_s; }

  // Lets time pass until `until_s` or the next failure. Returns true if nothing failed.
  bool pass(Activity activity, double until_s, int level = 0) {
    const double end_s = std::min({until_s, fate_.next_s(), job_.horizon_s});
    spend(activity, end_s, level);
    return end_s >= until_s || end_s >= job_.horizon_s;
  }

  void spend(Activity activity, double end_s, int level) {
    const double spent_s = std::max(0.0, end_s - now_s_);
    run_.seconds[static_cast<std::size_t>(activity)] += spent_s;
    note({now_s_, end_s, kActivityNames[static_cast<std::size_t>(activity)], level});
    now_s_ = std::max(now_s_, end_s);
  }

  void note(const Event& event) {
    if (run_.events.size() < most_events_ &&
        (event.end_s > event.begin_s || event.nodes > 0 || event.what == "lost")) {
      run_.events.push_back(event);
    }
  }

  // Returns the share of the nodes that work.
  double strength() const {
    const double nodes = machine_.placement.nodes;
    return (nodes - missing_) / nodes;
  }

  // Computes until the next checkpoint is due. Work in the background slows the program.
  Step work() {
    const double target_s = std::min(base_work_s_ + job_.pattern.work_s, job_.work_s);
    while (done_s_ < target_s && now_s_ < job_.horizon_s) {
      const Behind behind = behind_now();
      const double lost = behind.slowed;
      const double rate = (1 - lost) * strength();
      double until_s = now_s_ + (target_s - done_s_) / rate;
      const double stop_s = stop_at_s();
      const bool turns = behind.until_s < until_s;
      if (turns) until_s = behind.until_s;
      if (stop_s <= now_s_) return Step::target;
      const bool stops = stop_s < until_s;
      if (stops) until_s = stop_s;
      const double from_s = now_s_;
      const bool whole = pass(Activity::compute, until_s);
      const double passed_s = now_s_ - from_s;
      take_slowed(passed_s * lost);
      done_s_ =
          whole && !turns && !stops && now_s_ >= until_s ? target_s : done_s_ + passed_s * rate;
      computed_s_ += passed_s * rate;
      run_.behind_s += passed_s * behind.running;
      if (!whole) return Step::failed;
      if (stops) return Step::target;
    }
    return is_over() ? Step::done : Step::target;
  }

  // The present work in the background. If two activities run at once, they slow the program as
  // much as the heavier one alone.
  struct Behind {
    double slowed = 0;
    double running = 0;  // number of activities
    double until_s = kNever_s;
  };
  Behind behind_now() const {
    Behind now;
    for (std::size_t i = 0; i < behind_ends_s_.size(); ++i) {
      if (behind_ends_s_[i] <= now_s_) continue;
      now.slowed = std::max(now.slowed, job_.levels[i].slowed);
      now.running += 1;
      now.until_s = std::min(now.until_s, behind_ends_s_[i]);
    }
    return now;
  }

  void take_slowed(double seconds) {
    run_.seconds[static_cast<std::size_t>(Activity::compute)] -= seconds;
    run_.seconds[static_cast<std::size_t>(Activity::slowed)] += seconds;
  }

  // Returns when the last checkpoint of an allocation has to begin.
  double stop_at_s() const {
    if (allocation_ends_s_ == kNever_s) return kNever_s;
    const model::Level& deepest = job_.levels.back();
    const double slowest = 1 / (1 - machine_.contention.share);
    return allocation_ends_s_ -
           (deepest.blocked_s + deepest.behind_s) * job_.throttling.time_factor * slowest;
  }

  std::size_t due_level(std::uint64_t count) const {
    std::size_t level = 0;
    for (std::size_t i = 1; i < periods_.size(); ++i) {
      if (count % periods_[i] == 0) level = i;
    }
    return level;
  }

  double end_at_level(std::size_t index, double from_s, double alone_s) {
    const double seconds = alone_s * job_.throttling.time_factor;
    return job_.levels[index].number >= 4 ? bursts_.end_of(from_s, seconds) : from_s + seconds;
  }

  // Returns false if something failed meanwhile.
  bool checkpoint() {
    const bool is_last = now_s_ >= stop_at_s();
    const bool by_pattern = !is_last || done_s_ >= base_work_s_ + job_.pattern.work_s;
    const std::uint64_t count = count_ + (by_pattern ? 1 : 0);
    const std::size_t index = is_last ? job_.levels.size() - 1 : due_level(count);
    const model::Level& level = job_.levels[index];
    // The former checkpoint of this level is still in the background: the new one waits for it.
    if (now_s_ < behind_ends_s_[index]) {
      const double from_s = now_s_;
      const bool waited = pass(Activity::checkpoint, behind_ends_s_[index], level.number);
      run_.behind_s += now_s_ - from_s;
      if (!waited) return false;
    }
    if (!pass(Activity::checkpoint, end_at_level(index, now_s_, level.blocked_s), level.number))
      return false;
    if (now_s_ >= job_.horizon_s) return true;
    ++run_.checkpoints[index];
    count_ = count;
    base_work_s_ = done_s_;
    const double holds_s = end_at_level(index, now_s_, level.behind_s);
    const model::Level& first = job_.levels.front();
    const bool has_first = first.number == 1 && index > 0;
    const double shallow_s =
        has_first ? now_s_ + first.behind_s * job_.throttling.time_factor : holds_s;
    auto& kept = newest_[index];
    kept[0] = kept[1];
    kept[1] = Version{done_s_, count_, index, holds_s, shallow_s};
    behind_ends_s_[index] = holds_s;
    return is_last ? stand_in_queue(holds_s) : true;
  }

  bool stand_in_queue(double holds_s) {
    if (!pass(Activity::checkpoint, std::max(now_s_, holds_s), job_.levels.back().number))
      return false;
    behind_ends_s_.assign(job_.levels.size(), 0);
    spend(Activity::queue, std::min(now_s_ + machine_.queue_s, job_.horizon_s), 0);
    while (fate_.next_s() <= now_s_) strike();
    allocation_ends_s_ = now_s_ + machine_.allocation_s;
    losses_.all_nodes = true;  // the next allocation may have other nodes
    missing_ = 0;
    failed_at_s_ = now_s_;
    return restart();
  }

  // Applies the next failure and what it destroys.
  double strike() {
    const Failure failure = fate_.next();
    const bool is_recorded = failure.of_class == machine_.classes.size();
    ++run_.failures[failure.of_class];
    const FailureClass* const of = is_recorded ? nullptr : &machine_.classes[failure.of_class];
    const Takes takes = is_recorded ? fate_.recorded().takes : of->takes;
    const double repair_s = is_recorded ? fate_.recorded().repair_s : of->repair_s;
    note({failure.time_s, failure.time_s, "failure", 0,
          is_recorded ? "record" : std::string_view(of->name), failure.first_node, failure.nodes});
    if (of) least_level_ = std::max(least_level_, of->least_level);
    if (takes == Takes::process || (of && of->least_level > 0)) return failure.time_s;
    losses_.all_nodes |= takes != Takes::nodes;
    losses_.global |= takes == Takes::site;
    if (takes == Takes::nodes) lose_nodes(failure, of ? of->hit_share : 1, repair_s);
    return failure.time_s;
  }

  void lose_nodes(const Failure& failure, double hit_share, double repair_s) {
    const std::uint64_t surely = random_.below(failure.nodes);
    for (std::uint32_t i = 0; i < failure.nodes; ++i) {
      if (i != surely && hit_share < 1 && random_.uniform() > hit_share) continue;
      losses_.nodes.insert((failure.first_node + i) % machine_.placement.nodes);
      ++wanted_;
      if (repair_s > 0) repairs_.push(failure.time_s + repair_s);
    }
  }

  struct Choice {
    const Version* version = nullptr;  // null: nothing is left
    std::size_t level = 0;             // index of the level to restore from
  };

  // Returns the level from which the version could be restored, if any.
  std::optional<std::size_t> source_of(const Version& version, double now_s) const {
    const bool shallow = version.shallow_s <= now_s && can_use(0) && job_.levels[0].number == 1;
    if (shallow) return 0;
    if (version.holds_s <= now_s && can_use(version.level)) return version.level;
    return std::nullopt;
  }

  bool can_use(std::size_t index) const {
    const int number = job_.levels[index].number;
    return number >= least_level_ && survives(machine_.placement, number, losses_);
  }

  Choice choose(double at_s) const {
    Choice best;
    for (const auto& kept : newest_) {
      for (const auto& version : kept) {
        if (!version || (best.version && best.version->work_s >= version->work_s)) continue;
        if (const auto level = source_of(*version, at_s)) best = {&*version, *level};
      }
    }
    return best;
  }

  void recover() {
    while (now_s_ < job_.horizon_s) {
      const double failed_s = strike();
      down(failed_s);
      if (restart()) return;
    }
  }

  void down(double failed_s) {
    failed_at_s_ = failed_s;
    const double downtime_s = job_.levels[shallowest_that_can()].downtime_s;
    spend(Activity::down, std::min(now_s_ + downtime_s, job_.horizon_s), 0);
    while (fate_.next_s() <= now_s_) strike();
    wait_for_nodes();
  }

  // Returns the shallowest level that survives what was lost.
  std::size_t shallowest_that_can() const {
    for (std::size_t i = 0; i < job_.levels.size(); ++i) {
      if (can_use(i)) return i;
    }
    return job_.levels.size() - 1;
  }

  void wait_for_nodes() {
    if (!machine_.spares) {
      wanted_ = 0;
      return;
    }
    return_repaired();
    const bool shrinks = machine_.without_spare == WithoutSpare::shrink;
    while (out_ + wanted_ > *machine_.spares && !repairs_.empty() && !shrinks &&
           now_s_ < job_.horizon_s) {
      spend(Activity::down, std::min(std::max(now_s_, repairs_.top()), job_.horizon_s), 0);
      return_repaired();
    }
    out_ += wanted_;
    wanted_ = 0;
    const std::uint64_t short_of = out_ > *machine_.spares ? out_ - *machine_.spares : 0;
    missing_ = static_cast<double>(std::min<std::uint64_t>(short_of, machine_.placement.nodes - 1));
  }

  void return_repaired() {
    while (!repairs_.empty() && repairs_.top() <= now_s_) {
      repairs_.pop();
      if (out_ > 0) {
        --out_;
      } else if (wanted_ > 0) {
        --wanted_;
      }
    }
  }

  // Restores the newest version that survived. Returns false if something failed meanwhile.
  bool restart() {
    const Choice choice = choose(failed_at_s_);
    const std::size_t level = choice.version ? choice.level : job_.levels.size() - 1;
    const Version from =
        choice.version ? *choice.version : Version{0, 0, job_.levels.size() - 1, 0, 0};
    if (!pass(Activity::restart, now_s_ + job_.levels[level].restart_s, job_.levels[level].number))
      return false;
    if (now_s_ >= job_.horizon_s) return true;
    if (choice.version) {
      ++run_.restarts[level];
    } else {
      ++run_.from_scratch;
      note({now_s_, now_s_, "lost"});
    }
    done_s_ = from.work_s;
    base_work_s_ = from.work_s;
    count_ = from.count;
    forget_newer(from);
    losses_ = {};
    least_level_ = 0;
    return true;
  }

  // Work in the background at the time of the failure continues after the restart if its version
  // was restored. Newer versions are lost.
  void forget_newer(const Version& from) {
    behind_ends_s_.assign(job_.levels.size(), 0);
    for (auto& kept : newest_) {
      for (auto& version : kept) {
        if (!version) continue;
        if (version->work_s > from.work_s) {
          version.reset();
        } else if (version->holds_s > failed_at_s_) {
          version->holds_s = now_s_ + (version->holds_s - failed_at_s_);
          behind_ends_s_[version->level] = version->holds_s;
        }
      }
      if (!kept[1]) std::swap(kept[0], kept[1]);
    }
  }

  void finish() {
    run_.wall_s = now_s_;
    run_.work_s = std::min(done_s_, job_.work_s);
    run_.rework_s = std::max(0.0, computed_s_ - run_.work_s);
    run_.nodes_remembered = fate_.remembered();
    const model::Powers& powers = job_.powers;
    const double checkpoint_w = powers.checkpoint_w * job_.throttling.power_factor;
    const std::array<double, kActivities> watts = {powers.compute_w, powers.compute_w, checkpoint_w,
                                                   powers.restart_w, powers.idle_w,    0};
    for (std::size_t i = 0; i < kActivities; ++i) run_.joules[i] = run_.seconds[i] * watts[i];
    run_.behind_j = run_.behind_s * powers.behind_w * job_.throttling.power_factor;
  }

  const Job& job_;
  const Machine& machine_;
  Fate fate_;
  Bursts bursts_;
  Random random_;
  std::size_t most_events_;
  History run_;
  std::vector<std::uint64_t> periods_;  // in checkpoints, for each level of the pattern
  // The newest version and the one before it, for each level.
  std::vector<std::array<std::optional<Version>, 2>> newest_;
  double now_s_ = 0;
  double done_s_ = 0;       // useful work, in the present state of the program
  double computed_s_ = 0;   // all work, useful or lost
  double base_work_s_ = 0;  // work done at the last checkpoint or restart
  std::uint64_t count_ = 0;
  std::vector<double> behind_ends_s_;  // for each level
  double failed_at_s_ = 0;
  double allocation_ends_s_ = kNever_s;
  Losses losses_;
  int least_level_ = 0;
  std::uint64_t out_ = 0;     // nodes that are being repaired and were replaced
  std::uint64_t wanted_ = 0;  // nodes that were lost and are not replaced yet
  double missing_ = 0;        // nodes that the job runs without
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs_;
};

Status wrong(const std::string& what) { return fail(Code::argument, "simulation: " + what); }

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

Status check_levels(const Job& job) {
  if (job.levels.empty() || job.levels.size() > model::kMostLevels)
    return wrong("1 to 6 levels are needed");
  const std::size_t in_pattern = job.pattern.every.size();
  if (in_pattern != job.levels.size() && (in_pattern == 0 || in_pattern + 1 != job.levels.size()))
    return wrong("the pattern has not as many levels as the job");
  if (!(job.pattern.work_s > 0)) return wrong("the work between checkpoints must be above 0 s");
  for (std::size_t i = 0; i < job.levels.size(); ++i) {
    const model::Level& level = job.levels[i];
    const bool times = is_time(level.blocked_s) && is_time(level.behind_s) &&
                       is_time(level.restart_s) && is_time(level.downtime_s);
    if (!times)
      return wrong("a time of level " + std::to_string(level.number) + " is negative or endless");
    if (!(level.slowed >= 0 && level.slowed < 1))
      return wrong("a program is slowed by a share from 0 to below 1");
  }
  for (const double every : job.pattern.every) {
    if (!(every >= 1 && every <= 1e9 && every == std::floor(every)))
      return wrong("counts are whole, from 1 to 1e9");
  }
  return {};
}

}  // namespace

std::string_view activity_name(Activity activity) {
  return kActivityNames[static_cast<std::size_t>(activity)];
}

double History::total_joules() const {
  return std::accumulate(joules.begin(), joules.end(), behind_j);
}

Status check(const Job& job, const Machine& machine) {
  DIAPAUSE_TRY(check_levels(job));
  if (!(job.work_s > 0 && job.horizon_s > 0)) return wrong("work and horizon must be above 0 s");
  if (!std::isfinite(job.work_s) && !std::isfinite(job.horizon_s))
    return wrong("the run needs an end");
  if (machine.placement.nodes == 0) return wrong("there must be a node");
  for (const FailureClass& one : machine.classes) {
    if (!(one.law.mean_s > 0 && one.law.shape > 0))
      return wrong("the law of '" + one.name + "' needs a mean and a shape");
    if (!(one.hit_share >= 0 && one.hit_share <= 1)) return wrong("a share is from 0 to 1");
  }
  if (!(machine.contention.share >= 0 && machine.contention.share < 1))
    return wrong("others leave some of the rate");
  const model::Level& deepest = job.levels.back();
  const double last_s = (deepest.blocked_s + deepest.behind_s) * job.throttling.time_factor;
  if (machine.allocation_s <= 2 * (last_s / (1 - machine.contention.share) + deepest.restart_s)) {
    return wrong("the allocation is too short for a restart and a checkpoint of the deepest level");
  }
  return {};
}

History simulate(const Job& job, const Machine& machine, std::uint64_t seed,
                 std::size_t most_events) {
  return Simulation(job, machine, seed, most_events).play();
}

}  // namespace diapause::simulate
