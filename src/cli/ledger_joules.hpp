// Takes joules, with how far they may be off, out of the objects of a ledger
// (docs/formats/ledger.md). The code is pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace diapause::cli {

// This is a sum of which parts may be missing.
struct Joules {
  double sum = 0;           // of what is known
  std::size_t known = 0;    // how many were added
  std::size_t unknown = 0;  // how many nobody knows
  std::size_t absent = 0;   // how many no source was there for
  std::size_t doubted = 0;  // of the known ones, how many tell how uncertain they are
  std::size_t bounded = 0;  // and of how many it is known how far their sources are off
  // These are bounds of the error either way, by cause. Those of parts are added: phases of a kind
  // are alike, so that their errors may all have the same sign
  // (docs/decisions/0053-bounds-are-added.md).
  double sampling = 0, sensor = 0, attribution = 0;

  void add(const Joules& more);
  // Returns the sum of the three bounds; nullopt if one of them is not known of all parts.
  std::optional<double> uncertainty() const;
  // Returns whether energy is known of which nobody knows how far it may be off.
  bool is_estimate() const { return bounded < known; }
  bool is_partial() const { return known > 0 && (unknown > 0 || absent > 0); }
  // Returns the sum, nullopt if any part of it is missing. Who divides, compares or subtracts sums
  // needs this one.
  std::optional<double> complete() const {
    return known > 0 && !is_partial() ? std::optional(sum) : std::nullopt;
  }
  // Returns the sum of the parts that are known, nullopt if there are none.
  std::optional<double> of_known() const { return known > 0 ? std::optional(sum) : std::nullopt; }
};

// This says which joules of a line are taken: those of the total, or of a domain.
struct Wanted {
  std::string key = "total";
  std::string off_of = {};  // the domain whose uncertainty it is; empty: the total's is it
  bool is_told = false;     // the whole has them, so a part that has not is unknown
  std::string name = {};    // of the domain
  bool is_of_all = true;    // machines; otherwise those without a source are in no number
};

// Chooses from the joules of a whole. `part` is "node", "cpu", "dram", "gpu", or empty for the
// total. `total` has the domains that make it. A word that is no part stands for the total.
Wanted wanted_of(const std::string& part, const nlohmann::ordered_json& whole,
                 const std::string& total);
Wanted wanted_of_domain(const std::string& domain);

// Returns whether `domain` stands between the plus signs of `total`.
bool is_part(const std::string& domain, const std::string& total);

// Null is unknown, and so is a damaged value; without a source it is absent.
Joules joules_of(const nlohmann::ordered_json& object, const Wanted& wanted);

using Ends = std::pair<double, double>;  // joules
// Returns what the beginning and the end of a line add to the sampling error of its whole; nullopt
// if it does not tell.
std::optional<Ends> ends_of(const nlohmann::ordered_json& whole, const Wanted& wanted);

// Adds up the sampling errors of a whole job. Where lines of a start adjoin, what one has too much,
// the next has too little. Of lines without a hole between them only the ends of the first and the
// last remain.
class EndErrors {
 public:
  struct Line {
    std::uint64_t incarnation = 0;
    std::uint64_t nth = 0;  // of its start, as they stand in the ledger
    bool adjoins = false;   // to the one before it of its start
  };
  // Takes a line. Of one without ends, and of one that is never given, nothing is known.
  void add(const Line& line, const std::optional<Ends>& ends);
  // Lowers the sampling error of the sum of all lines, if all that are known have told their ends.
  // Returns whether it did.
  bool apply_to(Joules& whole) const;

 private:
  std::vector<Ends> ends_;
  struct Open {
    std::size_t place = 0;  // in ends_
    std::uint64_t nth = 0;  // of the last line
  };
  std::map<std::uint64_t, Open> open_;  // those that go on, by incarnation
  std::size_t lines_ = 0;
};

}  // namespace diapause::cli
