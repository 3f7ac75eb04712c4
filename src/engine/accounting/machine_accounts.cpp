#include "engine/accounting/machine_accounts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "format/checksum.hpp"

namespace diapause::engine {
namespace {

using nlohmann::json;

// Returns joules by domain. The result is empty if nothing is known or measured.
json known_joules(const json& part) {
  json known = json::object();
  if (!part.contains("joules")) return known;
  for (const auto& [domain, joules] : part["joules"].items()) {
    if (!joules.is_null()) known[domain] = joules;
  }
  return known;
}

// Returns false if there is no total at all.
bool is_total_unknown(const json& part) {
  return part.contains("joules") && part["joules"].contains("total") &&
         part["joules"]["total"].is_null();
}

void add_numbers(json& to, const json& more) {
  for (const auto& [key, value] : more.items()) to[key] = to.value(key, 0.0) + value.get<double>();
}

// Adds up uncertainties. The machines of a job do the same at the same time, and their meters are
// of one kind, so that all errors may have the same sign.
void add_uncertainty(json& to, const json& more) {
  if (!more.contains("uncertainty")) return;
  const json& with = more["uncertainty"];
  json sum =
      to.value("uncertainty", json{{"sampling_j", 0.0}, {"sensor_j", 0.0}, {"attribution_j", 0.0}});
  for (const char* const part : {"sampling_j", "attribution_j"}) {
    sum[part] = sum[part].get<double>() + with[part].get<double>();
  }
  const bool is_bounded = !sum["sensor_j"].is_null() && !with["sensor_j"].is_null();
  sum["sensor_j"] = is_bounded
                        ? json(sum["sensor_j"].get<double>() + with["sensor_j"].get<double>())
                        : json(nullptr);
  to["uncertainty_j"] = nullptr;
  if (is_bounded) {
    to["uncertainty_j"] = sum["sampling_j"].get<double>() + sum["sensor_j"].get<double>() +
                          sum["attribution_j"].get<double>();
  }
  to["uncertainty"] = std::move(sum);
  if (!more.contains("ends_j")) return;
  json ends = to.value("ends_j", json{0.0, 0.0});
  for (const std::size_t end : {0, 1})
    ends[end] = ends[end].get<double>() + more["ends_j"][end].get<double>();
  to["ends_j"] = std::move(ends);
}

// Adds up what lists of numbers by domain say. Where a machine does not tell of a domain of which
// it has joules, nobody can tell of the sum. Null is unknown, and so is a sum with it.
void add_by_domain(json& to, const json& more, const char* key) {
  json sums = json::object();
  const auto is_told = [key](const json& part, const std::string& domain) {
    return part.contains(key) && part[key].contains(domain);
  };
  const auto take = [&](const json& from, const json& other) {
    if (!from.contains(key)) return;
    for (const auto& [domain, numbers] : from[key].items()) {
      if (!known_joules(other).contains(domain)) sums[domain] = numbers;
      if (sums.contains(domain) || !is_told(other, domain)) continue;
      json sum = numbers;
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const json& with = other[key][domain][i];
        sum[i] = sum[i].is_null() || with.is_null()
                     ? json(nullptr)
                     : json(sum[i].get<double>() + with.get<double>());
      }
      sums[domain] = std::move(sum);
    }
  };
  take(to, more);
  take(more, to);
  to.erase(key);
  if (!sums.empty()) to[key] = std::move(sums);
}

void take_longest(json& to, const json& more, const char* key) {
  to[key] = std::max(to[key].get<double>(), more[key].get<double>());
}

// Returns the domains of a machine that have a source, and of which this line tells nothing, or of
// a part only.
std::set<std::string> unknown_domains(const json& machine) {
  const json& whole = machine["whole"];
  const json known = known_joules(whole);
  std::set<std::string> unknown;
  for (const json& source : machine["sources"]) {
    const std::string domain = source["domain"];
    const bool is_whole =
        !whole.contains("uncertainty_of") || whole["uncertainty_of"].contains(domain);
    if (!known.contains(domain) || !is_whole) unknown.insert(domain);
  }
  return unknown;
}

class Sum {  // NOLINT(bugprone-exception-escape): to move a json throws nothing
 public:
  void add(const json& machine) {
    ++machines_;
    hosts_.insert(machine.value("machine", ""));
    unknown_.merge(unknown_domains(machine));
    if (!known_joules(machine["whole"]).contains("total")) ++unmetered_;
    if (sum_.is_null()) {
      for (const auto& [name, value] : machine.items()) {
        if (name != "phases" && name != "machine") sum_[name] = value;
      }
    } else {
      for (const char* const part : {"program", "whole"}) add_part(sum_[part], machine[part]);
      for (const char* const longest : {"seconds", "gap_s"}) take_longest(sum_, machine, longest);
      add_sources(machine);
      add_processors(machine);
    }
    for (const json& phase : machine["phases"]) add_phase(phase);
  }

  json take() {
    sum_["machines"] = machines_;
    sum_["hosts"] = digest_of_hosts();
    if (unmetered_ > 0) sum_["unmetered"] = unmetered_;
    sum_["phases"] = json::array();
    for (const auto& key : order_) sum_["phases"].push_back(std::move(phases_[key]));
    for (const char* const by_domain : {"joules", "uncertainty_of", "ends_of"}) {
      if (!sum_["whole"].contains(by_domain)) continue;
      for (const std::string& domain : unknown_) sum_["whole"][by_domain].erase(domain);
    }
    return std::move(sum_);
  }

 private:
  using Key = std::tuple<std::uint64_t, int, std::string, std::string, std::size_t>;

  // Returns a digest that is the same for the same machines alone.
  std::string digest_of_hosts() const {
    std::string all;
    for (const std::string& host : hosts_) all += host + "\n";
    return fmt::format("{:016x}", format::checksum64(as_byte_view(all)));
  }

  void add_part(json& to, const json& more) {
    if (!more.contains("joules")) return;
    for (const char* const numbers : {"uncertainty_of", "ends_of"})
      add_by_domain(to, more, numbers);
    json joules = known_joules(to);
    add_numbers(joules, known_joules(more));
    to["joules"] = std::move(joules);
    add_uncertainty(to, more);
  }

  void add_sources(const json& machine) {
    for (const json& source : machine["sources"]) {
      auto& known = sum_["sources"];
      if (std::find(known.begin(), known.end(), source) == known.end()) known.push_back(source);
    }
    for (const json& boards : machine.value("left_out", json::array())) {
      json& known = sum_["left_out"];
      if (std::find(known.begin(), known.end(), boards) == known.end()) known.push_back(boards);
    }
    const std::string total = machine["total"];
    const std::string total_so_far = sum_["total"];
    const std::string parts = machine.value("told_apart_by", "");
    if (total.empty()) return;
    if (total_so_far.empty()) {
      sum_["total"] = total;
      if (!parts.empty()) sum_["told_apart_by"] = parts;
      return;
    }
    // Where machines differ, no name is that of all.
    if (parts != sum_.value("told_apart_by", "")) sum_.erase("told_apart_by");
    if (total != total_so_far) sum_["total"] = "mixed";
  }

  // Where one machine cannot tell who used its processors, nobody can tell it of the job.
  void add_processors(const json& machine) {
    if (!sum_.contains("processors") || !machine.contains("processors")) {
      sum_.erase("processors");
      return;
    }
    json& sum = sum_["processors"];
    const double most_s = std::max(sum["others_most_s"].get<double>(),
                                   machine["processors"]["others_most_s"].get<double>());
    add_numbers(sum, machine["processors"]);
    sum["others_most_s"] = most_s;
  }

  void add_phase(const json& phase) {
    Key key{phase["version"], phase["level"], phase["phase"], phase["beside"], phase["nth"]};
    const auto [found, is_new] = phases_.try_emplace(key, phase);
    json& sum = found->second;
    if (is_new) {
      sum.erase("nth");
      order_.push_back(std::move(key));
      return;
    }
    const bool is_unknown = is_total_unknown(sum) || is_total_unknown(phase);
    add_part(sum, phase);
    if (is_unknown) give_up_total(sum);
    const auto ratio = [](const json& line) {
      return line.contains("slowed") ? line["slowed"]["obtained"] : json(2);
    };
    if (ratio(phase) < ratio(sum)) sum["slowed"] = phase["slowed"];
    take_longest(sum, phase, "seconds");
  }

  // Drops the total of a phase; the known part is counted for the program.
  void give_up_total(json& phase) {
    json known = known_joules(phase);
    if (known.contains("total"))
      add_numbers(sum_["program"]["joules"], {{"total", known["total"]}});
    known["total"] = nullptr;
    phase["joules"] = std::move(known);
    phase.erase("uncertainty");
    phase.erase("uncertainty_j");
  }

  std::set<std::string> hosts_;    // digests
  std::set<std::string> unknown_;  // domains that the sum must not tell, as it would lack a part
  std::uint64_t machines_ = 0;
  std::uint64_t unmetered_ = 0;  // machines without a total
  json sum_;
  std::map<Key, json> phases_;  // the value on all machines
  std::vector<Key> order_;
};

}  // namespace

json add_up(std::span<const json> machines) {
  Sum sum;
  for (const json& machine : machines) sum.add(machine);
  return sum.take();
}

}  // namespace diapause::engine
