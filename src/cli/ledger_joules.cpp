#include "cli/ledger_joules.hpp"

#include <algorithm>

#include "cli/json_fields.hpp"

namespace diapause::cli {
namespace {

using fields::duration;
using fields::find;
using fields::number_of;
using json = nlohmann::ordered_json;

// Returns the list of so many entries that an object has for a domain; null if there is none.
const json* list_of(const json& object, const char* key, const std::string& domain,
                    std::size_t entries) {
  const json* const lists = find(object, key);
  const json* const list = lists == nullptr ? nullptr : find(*lists, domain.c_str());
  return list != nullptr && list->is_array() && list->size() == entries ? list : nullptr;
}

void add_uncertainty_of(Joules& one, const json& object, const std::string& domain) {
  const json* const parts = list_of(object, "uncertainty_of", domain, 3);
  if (parts == nullptr) return;
  const auto sampling = number_of((*parts)[0]);
  const auto sensor = number_of((*parts)[1]);
  const auto attribution = number_of((*parts)[2]);
  if (!sampling || *sampling < 0 || !attribution || *attribution < 0) return;
  one.doubted = 1;
  one.bounded = sensor && *sensor >= 0 ? 1 : 0;
  one.sampling = *sampling;
  one.sensor = one.bounded == 1 ? *sensor : 0;
  one.attribution = *attribution;
}

// Lines of schema 1 have the uncertainty of the samples alone, so their energy has no bound.
void add_uncertainty(Joules& one, const json& object) {
  const json* const parts = find(object, "uncertainty");
  const auto sampling =
      parts != nullptr ? duration(*parts, "sampling_j") : duration(object, "uncertainty_j");
  if (!sampling) return;
  one.doubted = 1;
  one.sampling = *sampling;
  if (parts == nullptr) return;
  one.attribution = duration(*parts, "attribution_j").value_or(0);
  const auto sensor = duration(*parts, "sensor_j");
  one.bounded = sensor.has_value();
  one.sensor = sensor.value_or(0);
}

}  // namespace

void Joules::add(const Joules& more) {
  sum += more.sum;
  known += more.known;
  unknown += more.unknown;
  absent += more.absent;
  doubted += more.doubted;
  bounded += more.bounded;
  sampling += more.sampling;
  sensor += more.sensor;
  attribution += more.attribution;
}

std::optional<double> Joules::uncertainty() const {
  return known > 0 && bounded == known ? std::optional(sampling + sensor + attribution)
                                       : std::nullopt;
}

bool is_part(const std::string& domain, const std::string& total) {
  return ("+" + total + "+").find("+" + domain + "+") != std::string::npos;
}

Wanted wanted_of_domain(const std::string& domain) { return {domain, domain, true, domain}; }

Wanted wanted_of(const std::string& part, const json& whole, const std::string& total) {
  const json* const joules = find(whole, "joules");
  if (part.empty() || joules == nullptr || !joules->is_object()) return {};
  std::string key = part;
  if (part == "cpu") key = joules->contains("package") ? "package" : "socket";
  Wanted wanted = wanted_of_domain(key);
  wanted.is_told = joules->contains(key);
  // The total of a slow meter is told apart by faster ones, and the domain is not.
  if (total == key) {
    wanted.key = "total";
    wanted.off_of.clear();
  }
  return wanted;
}

Joules joules_of(const json& object, const Wanted& wanted) {
  Joules one;
  const json* const joules = find(object, "joules");
  if (joules == nullptr ||
      (joules->is_object() && !joules->contains(wanted.key) && !wanted.is_told)) {
    one.absent = 1;
  } else if (const auto value = fields::number(*joules, wanted.key.c_str())) {
    one.sum = *value;
    one.known = 1;
    one.absent = wanted.is_of_all ? 0 : 1;
    if (wanted.off_of.empty()) {
      add_uncertainty(one, object);
    } else {
      add_uncertainty_of(one, object, wanted.off_of);
    }
  } else {
    one.unknown = 1;
  }
  return one;
}

std::optional<Ends> ends_of(const json& whole, const Wanted& wanted) {
  const json* ends = find(whole, "ends_j");
  if (!wanted.off_of.empty()) ends = list_of(whole, "ends_of", wanted.off_of, 2);
  if (ends == nullptr || !ends->is_array() || ends->size() != 2) return std::nullopt;
  const auto begin = number_of((*ends)[0]);
  const auto end = number_of((*ends)[1]);
  if (!begin || !end || *begin < 0 || *end < 0) return std::nullopt;
  return Ends{*begin, *end};
}

void EndErrors::add(const Line& line, const std::optional<Ends>& ends) {
  if (!ends) return;
  const auto [found, is_first] = open_.try_emplace(line.incarnation);
  Open& open = found->second;
  if (is_first || !line.adjoins || open.nth + 1 != line.nth) {
    open.place = ends_.size();
    ends_.emplace_back(ends->first, 0);
  }
  open.nth = line.nth;
  ends_[open.place].second = ends->second;
  ++lines_;
}

bool EndErrors::apply_to(Joules& whole) const {
  if (lines_ == 0 || lines_ != whole.known || whole.doubted != lines_) return false;
  double of_ends = 0;
  for (const auto& [begin, end] : ends_) of_ends += begin + end;
  whole.sampling = std::min(of_ends, whole.sampling);
  return true;
}

}  // namespace diapause::cli
