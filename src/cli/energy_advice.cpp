#include "cli/energy_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/quantities.hpp"

namespace diapause::cli {
namespace {

constexpr double kLeastShare = 0.01;
constexpr int kDigits = 2;  // of what a formula gives

// The joules come from a formula. Its error has no bound.
Joules estimate_of(double joules) {
  Joules one;
  one.sum = joules;
  one.known = one.doubted = 1;
  return one;
}

std::optional<Advice> other_intervals(const EnergySummary& energy,
                                      const std::optional<Hindsight>& hindsight) {
  if (!hindsight || !hindsight->has_powers || !energy.whole.of_known()) return std::nullopt;
  const model::Plan& best = hindsight->cheapest;
  std::string levels;
  for (std::size_t i = 1; i < best.levels.size(); ++i) {
    levels += fmt::format("{}level {} every {}", i == 1 ? "" : ", ", best.levels[i].number,
                          duration_text(best.pattern.period_work_s(i), kDigits));
  }
  Advice advice;
  advice.what = fmt::format("take checkpoints every {} of work{}, not every {}",
                            duration_text(best.pattern.work_s, kDigits),
                            levels.empty() ? "" : " (" + levels + ")",
                            duration_text(hindsight->as_was.work_s));
  advice.saves = estimate_of(*energy.whole.of_known() * (1 - 1 / (1 + hindsight->more_energy())));
  advice.how_sure = "by formula, for " + failures_text(*hindsight);
  return advice;
}

std::optional<Advice> behind_the_program(const EnergySummary& energy) {
  Joules held;
  double seconds = 0;
  for (const auto& [key, amount] : energy.phases) {
    if (key.of_restart || key.level < 2) continue;
    held.add(amount.holding);
    seconds += amount.holding_s;
  }
  if (!held.complete()) return std::nullopt;
  Advice advice;
  advice.what = fmt::format(
      "set async.mode to \"thread\": the program stood still for {} while checkpoints went to "
      "levels 2 to 4",
      duration_text(seconds));
  advice.saves = held;
  advice.is_at_most = true;
  advice.how_sure =
      "all that the node used meanwhile; the work itself costs some of it behind the program, too";
  return advice;
}

// Adds up the waits of versions of which it is told how much was a wait for room, without that, or
// those of all others. In a wait for room, the phases behind the program have the energy.
Amount waits_of(const EnergySummary& energy, bool is_room_told) {
  const auto watts = energy.watts();
  Amount waits;
  for (const auto& [key, amount] : energy.phases) {
    const auto room = energy.waited_for_room_s.find(key.version);
    const bool is_told = room != energy.waited_for_room_s.end();
    if (key.phase != "wait" || is_told != is_room_told) continue;
    Amount rest = amount;
    if (is_told) {
      rest.seconds = std::max(0.0, amount.seconds - room->second);
      if (watts) rest.joules.sum = std::min(rest.joules.sum, *watts * rest.seconds);
    }
    waits.add(rest);
  }
  return waits;
}

std::optional<Advice> together(const Amount& waits, const char* for_what) {
  if (!waits.joules.complete()) return std::nullopt;
  Advice advice;
  advice.what = fmt::format(
      "let the ranks come to checkpoints at one time: they waited for one another{}, for {}",
      for_what, duration_text(waits.seconds));
  advice.saves = waits.joules;
  advice.is_at_most = true;
  advice.how_sure =
      "what they used meanwhile; ranks that are unequal wait elsewhere without checkpoints";
  return advice;
}

std::optional<Advice> more_room(const EnergySummary& energy) {
  double seconds = 0;
  for (const auto& [version, waited_s] : energy.waited_for_room_s) seconds += waited_s;
  const auto watts = energy.watts();
  if (!watts || !(seconds > 0)) return std::nullopt;
  Advice advice;
  advice.what = fmt::format(
      "take checkpoints of the deepest level less often, let more versions be in flight "
      "(async.in_flight, async.in_flight_mib), or write them faster (async.flush_mib_s): the "
      "program waited for {} for versions in flight to make room",
      duration_text(seconds));
  advice.saves = estimate_of(*watts * seconds);
  advice.is_at_most = true;
  advice.how_sure =
      "the mean power for that time; more versions in flight help only if checkpoints come in "
      "bursts";
  return advice;
}

}  // namespace

std::vector<Advice> advice_for(const EnergySummary& energy,
                               const std::optional<Hindsight>& hindsight) {
  const auto whole = energy.whole.of_known();
  std::vector<Advice> all;
  if (!whole || !(*whole > 0)) return all;
  for (auto one : {other_intervals(energy, hindsight), behind_the_program(energy),
                   together(waits_of(energy, true), ""),
                   together(waits_of(energy, false), ", or for room"), more_room(energy)}) {
    // A saving that is no more than its uncertainty may be none at all.
    if (one && energy.whole.complete()) one->saves.sum = std::min(one->saves.sum, *whole);
    if (one && one->saves.sum >= kLeastShare * *whole &&
        one->saves.uncertainty().value_or(0) < one->saves.sum) {
      all.push_back(*one);
    }
  }
  std::ranges::stable_sort(
      all, [](const Advice& a, const Advice& b) { return a.saves.sum > b.saves.sum; });
  return all;
}

}  // namespace diapause::cli
