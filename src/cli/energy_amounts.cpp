#include "cli/energy_amounts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text.hpp"
#include "energy/total.hpp"

namespace diapause::cli {

namespace {

// Returns what a value is below, with two digits.
std::string below_text(double value, const char* unit) {
  if (!(value > 0)) return fmt::format("< 0 {}", unit);
  const double step = std::pow(10.0, std::floor(std::log10(value)) - 1);
  // A value that has two digits stays as it is, though its binary fraction may be a little more.
  return "< " + rounded_text(std::ceil(value / step - 1e-9) * step, 2, unit);
}

// Returns a part of the whole as text. Its digits follow from what samples and charging leave open;
// the source is off by the same share of both.
std::string part_text(const Joules& part, const Joules& whole, double percent) {
  if (part.doubted < part.known || whole.doubted < whole.known)
    return rounded_text(percent, 2, "%");
  const double off = part.sampling + part.attribution + percent / 100 * whole.sampling;
  return to_the_digits_of(percent, off / whole.sum * 100, "%");
}

std::string level_text(const PhaseKey& key) {
  if (key.of_restart) return "restart";
  return key.level == 0 ? "of no one level" : fmt::format("level {}", key.level);
}

}  // namespace

std::optional<double> only_bound(const Joules& joules) {
  const auto error = joules.uncertainty();
  if (!error || *error == 0 || *error < joules.sum || joules.is_partial()) return std::nullopt;
  return std::max(0.0, joules.sum + *error);
}

std::string joules_text(const Joules& joules) {
  if (const auto bound = only_bound(joules)) return below_text(*bound, "J");
  if (joules.known == 0) return joules.unknown > 0 ? "unknown" : "-";
  const std::string at_least = joules.is_partial() ? ">= " : "";
  if (joules.is_estimate()) return at_least + "~ " + rounded_text(joules.sum, 2, "J");
  const auto off = joules.uncertainty();
  return at_least +
         (off && *off > 0 ? value_text(joules.sum, *off, "J") : rounded_text(joules.sum, 3, "J"));
}

std::optional<double> share_percent(const Joules& joules, const EnergySummary& energy) {
  const auto part = joules.complete();
  const auto whole = energy.whole.complete();
  return part && whole && *whole > 0 ? std::optional(*part / *whole * 100) : std::nullopt;
}

std::string share_text(const Joules& joules, const EnergySummary& energy) {
  const auto whole = energy.whole.of_known();
  const auto part = joules.of_known();
  if (!whole || !(*whole > 0) || !part) return "-";
  if (energy.whole.is_partial()) {
    const double most = only_bound(joules).value_or(*part) / *whole * 100;
    return joules.is_partial() || most >= 100 ? "-" : "<= " + part_text(joules, energy.whole, most);
  }
  if (const auto bound = only_bound(joules))
    return below_text(std::min(*bound / *whole * 100, 100.0), "%");
  return (joules.is_partial() ? ">= " : "") + part_text(joules, energy.whole, *part / *whole * 100);
}

bool is_covered_by(const std::string& total, const std::string& domain) {
  const auto* const name = std::ranges::find(energy::kDomainNames, domain);
  if (total.empty() || total == "mixed" || name == energy::kDomainNames.end()) return false;
  return energy::is_covered(total,
                            static_cast<energy::Domain>(name - energy::kDomainNames.begin()));
}

std::string kind_of(const EnergySummary& energy, const std::string& domain) {
  std::set<std::string> kinds;
  for (const EnergySource& one : energy.sources) {
    if (one.domain == domain) kinds.insert(printable(one.kind));
  }
  return fmt::format("{}", fmt::join(kinds, " and "));
}

std::string parts_text(const Joules& joules) {
  const std::string sensor =
      joules.is_estimate() ? "not known" : rounded_text(joules.sensor, 2, "J");
  return fmt::format("{} as samples are apart, {} by the source itself, {} by who is charged",
                     rounded_text(joules.sampling, 2, "J"), sensor,
                     rounded_text(joules.attribution, 2, "J"));
}

std::array<std::string, 3> part_cells(const Joules& joules) {
  if (joules.known == 0 || joules.doubted < joules.known) {
    const char* const none = joules.known == 0 ? "-" : "no bound";
    return {none, none, none};
  }
  return {rounded_text(joules.sampling, 2, "J"),
          joules.is_estimate() ? "no bound" : rounded_text(joules.sensor, 2, "J"),
          rounded_text(joules.attribution, 2, "J")};
}

std::string short_parts_text(const Joules& joules) {
  if (joules.known == 0) return "";
  if (joules.doubted < joules.known) return " (without a bound)";
  const auto cells = part_cells(joules);
  return fmt::format(" (off by: samples {}, source {}, charging {})", cells[0], cells[1], cells[2]);
}

const char* activity_of(const PhaseKey& key) { return key.of_restart ? "restart" : "checkpoint"; }

void Group::add(const PhaseKey& key, const Amount& amount) {
  sum_.add(amount);
  std::uint64_t& bytes = bytes_[key.version];
  bytes = std::max(bytes, amount.bytes);
}

Amount Group::sum() const {
  Amount sum = sum_;
  sum.bytes = 0;
  for (const auto& [version, bytes] : bytes_) sum.add({0, 0, bytes, {}});
  return sum;
}

std::vector<LevelSum> sums_of_levels(const EnergySummary& energy) {
  std::map<std::pair<bool, std::uint64_t>, LevelSum> sums;
  for (const auto& [key, amount] : energy.phases) {
    const std::uint64_t level = key.of_restart ? 0 : key.level;
    const LevelSum empty{level_text(key), level, key.of_restart, {}};
    LevelSum& sum = sums.try_emplace({key.of_restart, level}, empty).first->second;
    sum.group.add(key, amount);
  }
  std::vector<LevelSum> list;
  for (auto& [place, sum] : sums) list.push_back(std::move(sum));
  return list;
}

Joules per_gb(const Amount& amount) {
  Joules joules = amount.joules;
  const double gb = static_cast<double>(amount.bytes) * 1e-9;
  if (!(gb > 0)) return {};
  joules.sum /= gb;
  joules.sampling /= gb;
  joules.sensor /= gb;
  joules.attribution /= gb;
  return joules;
}

}  // namespace diapause::cli
