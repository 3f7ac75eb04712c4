// Writes amounts of energy as text, and sums phases up by level.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/energy_summary.hpp"

namespace diapause::cli {

// Returns joules with their uncertainty, as "284 +- 30 J", "~ 280 J" if nobody knows how far the
// source is off, "< 12 J" if the uncertainty is as large as the number, or "unknown".
std::string joules_text(const Joules& joules);
// Returns what the joules are below, if the uncertainty is as large as they are.
std::optional<double> only_bound(const Joules& joules);

// Returns the part of the whole job's energy; nullopt if anything of the two is missing.
std::optional<double> share_percent(const Joules& joules, const EnergySummary& energy);
// Returns the same as text: ">= 5.00 %" if something of the part is missing, and "<= 5.00 %" if
// something of the whole is.
std::string share_text(const Joules& joules, const EnergySummary& energy);

// Returns whether what the domain uses is in a total of that name, itself or as a part of another.
bool is_covered_by(const std::string& total, const std::string& domain);

// Returns how the energy of the domain is known: "measured", "modelled", or both.
std::string kind_of(const EnergySummary& energy, const std::string& domain);

// Returns the bound of the error by cause, such as "2.0 J as samples are apart, 25 J by the source
// itself, 4.0 J by who is charged".
std::string parts_text(const Joules& joules);
// Returns the same for a line that goes on, as " (off by: samples 2.0 J, source 25 J, charging 4.0
// J)". The text is empty if the joules do not tell.
std::string short_parts_text(const Joules& joules);
// These are the heads of the three columns that stand beside joules in a table, and their cells.
inline constexpr std::array<const char*, 3> kPartHeads = {"SAMPLING", "SENSOR", "CHARGED"};
std::array<std::string, 3> part_cells(const Joules& joules);

const char* activity_of(const PhaseKey& key);

// Adds phases up. Phases of one version are about the same bytes, so that the most of them count.
class Group {
 public:
  void add(const PhaseKey& key, const Amount& amount);
  std::size_t versions() const { return bytes_.size(); }
  Amount sum() const;

 private:
  Amount sum_;
  std::map<std::uint64_t, std::uint64_t> bytes_;  // by version
};

struct LevelSum {
  std::string name;
  std::uint64_t level = 0;
  bool of_restart = false;
  Group group;
};

std::vector<LevelSum> sums_of_levels(const EnergySummary& energy);

// Returns the joules of 10^9 protected bytes.
Joules per_gb(const Amount& amount);

}  // namespace diapause::cli
