// The external events of one run: failures, and the load of other jobs on the global tier.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simulate/job.hpp"
#include "simulate/random.hpp"

namespace diapause::simulate {

// Gives the failures from the laws and from the record, in the order of time.
class Fate {
 public:
  Fate(const Machine& machine, std::uint64_t seed)
      : machine_(machine),
        failures_(machine.classes, machine.placement.nodes, seed),
        from_law_(failures_.next()) {
    take_recorded();
  }

  double next_s() const { return std::min(from_law_.time_s, recorded_s_); }

  Failure next() {
    if (from_law_.time_s <= recorded_s_) {
      const Failure failure = from_law_;
      from_law_ = failures_.next();
      return failure;
    }
    const RecordedFailure& line = machine_.record[place_];
    const Failure failure{recorded_s_, machine_.classes.size(), line.first_node, line.nodes};
    last_recorded_ = place_++;
    take_recorded();
    return failure;
  }

  // Returns the effect of the last failure that next() returned, and its duration.
  const RecordedFailure& recorded() const { return machine_.record[last_recorded_]; }
  std::size_t remembered() const { return failures_.remembered(); }

 private:
  void take_recorded() {
    if (place_ == machine_.record.size() && machine_.record_period_s > 0 &&
        !machine_.record.empty()) {
      place_ = 0;
      round_s_ += machine_.record_period_s;
    }
    recorded_s_ =
        place_ < machine_.record.size() ? round_s_ + machine_.record[place_].time_s : kNever_s;
  }

  const Machine& machine_;
  Failures failures_;
  Failure from_law_;
  std::size_t place_ = 0, last_recorded_ = 0;
  double round_s_ = 0;
  double recorded_s_ = kNever_s;
};

// Bursts of other jobs on the global tier. Times must be asked for in ascending order.
class Bursts {
 public:
  Bursts(const Contention& contention, std::uint64_t seed)
      : contention_(contention), random_(seed) {
    ends_s_ = contention.quiet_s > 0 ? contention.quiet_s * random_.exponential() : kNever_s;
  }

  // Returns when an activity ends that begins at `from_s` and takes `alone_s` without other jobs.
  double end_of(double from_s, double alone_s) {
    double now_s = from_s;
    double left_s = alone_s;
    while (true) {
      while (ends_s_ <= now_s) turn();
      const double rate = is_burst_ ? 1 - contention_.share : 1;
      if (now_s + left_s / rate <= ends_s_) return now_s + left_s / rate;
      left_s -= (ends_s_ - now_s) * rate;
      now_s = ends_s_;
    }
  }

 private:
  void turn() {
    is_burst_ = !is_burst_;
    ends_s_ += (is_burst_ ? contention_.burst_s : contention_.quiet_s) * random_.exponential();
  }

  Contention contention_;
  Random random_;
  bool is_burst_ = false;
  double ends_s_;
};

}  // namespace diapause::simulate
