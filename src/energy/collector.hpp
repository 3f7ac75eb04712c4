// Holds all meters of a node and what they have said so far. The class is not thread-safe;
// sampler.hpp has one that is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/accumulator.hpp"
#include "energy/meter.hpp"
#include "energy/node_curve.hpp"
#include "energy/series.hpp"
#include "energy/total.hpp"

namespace diapause::energy {

class Collector {
 public:
  // collect() will be called every `period_s` seconds.
  Collector(std::vector<std::unique_ptr<Meter>> meters, double period_s);

  // Reads every meter. `now_s` is a time of sys::monotonic_s(), and not before that of the last
  // call.
  void collect(double now_s) { collect(now_s, &Meter::read); }
  // Does the same where somebody wants to know now.
  void collect_well(double now_s) { collect(now_s, &Meter::read_well); }
  double began_s() const { return began_s_; }  // time of the first call
  double collected_s() const { return collected_s_; }

  // Returns the update period of the slowest zone that has shown no life yet, or 0 if all have.
  // Until decide() all zones are on probation.
  double undecided_s() const;
  // Returns whether any of them is a counter that may only stand still because nothing is done.
  bool needs_load() const;
  // Keeps the zones that have used energy since the first reading, and reads no others from then
  // on. The reason why a zone was dropped becomes an obstacle.
  enum class Models { always, where_nothing_is_measured };
  void decide(Models models);

  // After decide() these are the live zones, fixed from then on, and what was dropped.
  const std::vector<Zone>& zones() const { return zones_; }
  const std::vector<Obstacle>& dropped() const { return dropped_; }
  const Total& total() const { return total_; }
  // Returns by which of them the total is told apart in time where its own meter is slow. If it is
  // empty, that meter does it.
  const Total& fast_parts() const { return fast_parts_; }
  const Series& series(std::size_t zone) const { return followed_[zones_at_[zone]].series; }
  Amount between(std::size_t zone, double from_s, double to_s) const;
  Amount total_between(double from_s, double to_s) const;
  // Returns why a zone could not be read when it was last tried; the text is empty if it could.
  const std::string& failure(std::size_t zone) const { return followed_[zones_at_[zone]].failure; }

 private:
  // This is a zone of a meter. Those of all meters stand one after the other.
  struct Followed {
    Zone zone;
    Accumulator accumulator;
    Series series;
    std::string failure = {};
    std::uint64_t last_count = 0;
    bool was_read = false;
    bool is_dropped = false;
    std::string doubt = {};  // why it is not believed; empty: it is
  };
  struct Placed {
    std::unique_ptr<Meter> meter;
    std::size_t first, end;  // its zones in followed_
  };
  void collect(double now_s, void (Meter::*read)(double now_s, std::vector<Reading>& out));
  void take(Followed& followed, Reading& reading);
  static bool is_alive(const Followed& followed);
  double most_j(Domain domain) const;
  double least_j(Domain domain) const;
  void drop_what_holds_less_than_its_parts();
  std::string why_dead(const Followed& followed) const;
  Amount sum_between(const Total& of, double from_s, double to_s) const;

  std::vector<Placed> meters_;
  std::vector<Followed> followed_;
  std::vector<std::size_t> zones_at_;  // where in followed_ the live zones are
  std::vector<Zone> zones_;
  std::vector<Obstacle> dropped_;
  Total total_, fast_parts_;
  std::optional<NodeCurve> curve_;  // if there are fast parts
  std::vector<Reading> readings_;   // readings of one meter; kept for its memory
  double began_s_ = 0;
  double collected_s_ = 0;
};

}  // namespace diapause::energy
