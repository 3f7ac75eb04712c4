#include "energy/collector.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace diapause::energy {
namespace {

// A model knows the time at which it looked, but the kernel counts processor time in ticks.
constexpr double kTickS = 0.01;

// A sensor of power shows a mean over the time since it last changed, and the trapezoidal rule that
// adds it up is half of that time ahead.
double lag_of(const Zone& zone) {
  if (zone.kind == Kind::modelled) return kTickS;
  return zone.quantity == Quantity::power ? 1.5 * zone.update_s : zone.update_s;
}

Series series_of(const Zone& zone) {
  return Series({zone.update_s, lag_of(zone), zone.peak_w, zone.resolution_j, zone.accuracy});
}

}  // namespace

Collector::Collector(std::vector<std::unique_ptr<Meter>> meters, double period_s) {
  for (auto& meter : meters) {
    const std::size_t first = followed_.size();
    for (const Zone& zone : meter->zones())
      followed_.push_back({zone, Accumulator(zone, period_s), series_of(zone)});
    meters_.push_back({std::move(meter), first, followed_.size()});
  }
}

void Collector::collect(double now_s,
                        void (Meter::*read)(double now_s, std::vector<Reading>& out)) {
  if (began_s_ == 0) began_s_ = now_s;
  collected_s_ = now_s;
  for (const Placed& placed : meters_) {
    readings_.clear();
    ((*placed.meter).*read)(now_s, readings_);
    for (Reading& reading : readings_) take(followed_[placed.first + reading.zone], reading);
  }
  if (!curve_) return;
  curve_->learn(series(total_.zones.front()), [this](double from_s, double to_s) {
    return sum_between(fast_parts_, from_s, to_s);
  });
}

void Collector::take(Followed& followed, Reading& reading) {
  if (followed.is_dropped) return;
  if (!reading.count) {
    followed.failure = reading.count.error().message;
    return;
  }
  followed.failure.clear();
  followed.was_read = true;
  followed.last_count = *reading.count;
  auto& accumulator = followed.accumulator;
  const auto point = reading.is_after_gap ? accumulator.restart(reading.time_s, *reading.count)
                                          : accumulator.add(reading.time_s, *reading.count);
  if (point) followed.series.add(*point);
}

// A counter that stands still may be dead. A model of a machine that does nothing may rightly say 0
// W.
bool Collector::is_alive(const Followed& followed) {
  const bool is_modelled =
      followed.zone.kind == Kind::modelled && followed.was_read && followed.failure.empty();
  return followed.accumulator.has_moved() || is_modelled;
}

double Collector::undecided_s() const {
  double slowest_s = 0;
  for (const Followed& followed : followed_) {
    if (!followed.accumulator.has_moved()) slowest_s = std::max(slowest_s, followed.zone.update_s);
  }
  return slowest_s;
}

bool Collector::needs_load() const {
  return std::any_of(followed_.begin(), followed_.end(), [](const Followed& followed) {
    const Zone& zone = followed.zone;
    return !followed.accumulator.has_moved() && zone.kind == Kind::measured &&
           zone.quantity == Quantity::energy;
  });
}

std::string Collector::why_dead(const Followed& followed) const {
  if (!followed.doubt.empty()) return followed.doubt;
  if (!followed.failure.empty()) return followed.failure;
  if (!followed.was_read) return "gives no readings";
  if (followed.accumulator.accidents() > 0) {
    return fmt::format("gives readings that make no sense, the last one {}", followed.last_count);
  }
  return fmt::format("stands still at {} for {:.1g} s", followed.last_count,
                     collected_s_ - began_s_);
}

// Returns the energy since the first reading, from the first meter of that domain.
double Collector::most_j(Domain domain) const {
  double joules = 0;
  for (const Followed& followed : followed_) {
    if (followed.zone.domain != domain || followed.zone.kind != Kind::measured ||
        !is_alive(followed))
      continue;
    const Amount amount = followed.series.between(began_s_, collected_s_);
    joules += amount.joules + amount.off.together_j();
  }
  return joules;
}

double Collector::least_j(Domain domain) const {
  double joules = 0;
  std::string_view first_meter;
  for (const Followed& followed : followed_) {
    if (followed.zone.domain != domain || followed.zone.kind != Kind::measured ||
        !is_alive(followed))
      continue;
    const std::string_view meter =
        std::string_view(followed.zone.source).substr(0, followed.zone.source.find(' '));
    if (first_meter.empty()) first_meter = meter;
    if (meter != first_meter) continue;
    const Amount amount = followed.series.between(began_s_, collected_s_);
    joules += std::max(0.0, amount.joules - amount.off.together_j());
  }
  return joules;
}

// A platform cannot draw less than the processors and the memory in it. On some boards its counter
// covers something else, or nothing.
void Collector::drop_what_holds_less_than_its_parts() {
  const double parts_j = least_j(Domain::package) + least_j(Domain::dram);
  const double psys_j = most_j(Domain::psys);
  if (psys_j >= parts_j) return;
  const double seconds = collected_s_ - began_s_;
  for (Followed& followed : followed_) {
    if (followed.zone.domain != Domain::psys || followed.zone.kind != Kind::measured ||
        !is_alive(followed))
      continue;
    followed.doubt = fmt::format(
        "tells at most {:.1f} W, and package and dram, which are in it, draw at least {:.1f} W",
        psys_j / seconds, parts_j / seconds);
  }
}

void Collector::decide(Models models) {
  if (collected_s_ > began_s_) drop_what_holds_less_than_its_parts();
  std::vector<Zone> alive;
  for (const Followed& followed : followed_) {
    if (is_alive(followed) && followed.doubt.empty()) alive.push_back(followed.zone);
  }
  const bool is_measured =
      choose_total(alive).kind == Kind::measured && !choose_total(alive).zones.empty();
  for (std::size_t i = 0; i < followed_.size(); ++i) {
    Followed& followed = followed_[i];
    const bool is_spare = is_measured && models == Models::where_nothing_is_measured &&
                          followed.zone.kind == Kind::modelled;
    followed.is_dropped = is_spare || !is_alive(followed) || !followed.doubt.empty();
    if (!followed.is_dropped) {
      zones_.push_back(followed.zone);
      zones_at_.push_back(i);
    } else if (!is_spare) {
      dropped_.push_back({followed.zone.source, why_dead(followed)});
    }
  }
  total_ = choose_total(zones_);
  fast_parts_ = choose_fast_parts(zones_, total_);
  if (!fast_parts_.zones.empty()) curve_.emplace(zones_[total_.zones.front()].update_s);
  // Meters that nobody looks at any more are not read.
  std::erase_if(meters_, [this](const Placed& placed) {
    for (std::size_t i = placed.first; i < placed.end; ++i) {
      if (!followed_[i].is_dropped) return false;
    }
    return true;
  });
}

Amount Collector::between(std::size_t zone, double from_s, double to_s) const {
  return series(zone).between(from_s, to_s);
}

Amount Collector::sum_between(const Total& of, double from_s, double to_s) const {
  std::vector<Amount> parts;
  for (const std::size_t zone : of.zones) parts.push_back(between(zone, from_s, to_s));
  return add_up(parts);
}

Amount Collector::total_between(double from_s, double to_s) const {
  if (!curve_) return sum_between(total_, from_s, to_s);
  return curve_->between(
      series(total_.zones.front()),
      [this](double begin_s, double end_s) { return sum_between(fast_parts_, begin_s, end_s); },
      from_s, to_s);
}

}  // namespace diapause::energy
