// Sums up what the `energy` lines of a ledger say of a whole job (docs/formats/ledger.md,
// docs/energy-account.md). The code is pure: it takes lines and asks nobody else. A ledger may be
// damaged: what has not the type that it should have is left out, and counted.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/ledger_joules.hpp"
#include "cli/line_sequence.hpp"

namespace diapause::cli {

// This is what the governor has slowed, by ratios of the base clock.
struct Slowed {
  std::size_t times = 0;
  double asked = 1, obtained = 1;  // the lowest
  std::set<std::string> actuators;

  void add(const Slowed& more);
};

struct Amount {
  std::size_t times = 0;
  double seconds = 0;
  std::uint64_t bytes = 0;
  Joules joules;
  Slowed slowed = {};
  Joules holding = {};  // of it, that of phases which held the program up
  double holding_s = 0;

  void add(const Amount& more);
};

// The key names a phase of the checkpoint that takes a version, or of the restart that restores it.
struct PhaseKey {
  std::uint64_t version = 0;
  bool of_restart = false;
  std::uint64_t level = 0;  // 0: not of one level
  std::string phase;

  auto operator<=>(const PhaseKey&) const = default;
};

struct EnergySource {
  std::string domain, source, kind;
  std::string accuracy = {};  // "off by up to 5 %: who says so"; empty: it is not told

  auto operator<=>(const EnergySource&) const = default;
};

// This is what the program had done since the version was captured that a restart went back to.
struct Rework {
  std::uint64_t incarnation = 0;  // that restored
  std::uint64_t version = 0;
  // It says whether any line tells when the version was captured. The rest counts only then.
  bool is_known = false;
  double seconds = 0;  // to the last line before the failure
  Joules joules;       // of the program, without its checkpoints
  // It is the time from that line to the start that restored. For at most so long work went on that
  // no line accounts for.
  std::optional<double> unaccounted_s;
};

// This says who used the processors of the job's machines, as far as lines tell.
struct Processors {
  std::size_t lines = 0;  // that tell
  double job_s = 0, others_s = 0;
  double others_most_s = 0;  // on the machine on which others used most
  // These are the job's part of the energy by processor time, and how far it may be off since
  // processors draw more for one program than for another.
  std::size_t lines_with_joules = 0;
  double job_j = 0, job_off_j = 0;
};

// This is the energy of a domain, over all lines.
struct DomainEnergy {
  Joules whole;
  Joules phases;  // of it
};

struct EnergySummary {
  std::size_t energy_lines = 0;
  // It is the schema of lines that are not for this version, and are left out.
  std::optional<std::uint64_t> other_schema;
  // It counts lines that are no JSON, and energy lines of which something is not as it should be.
  std::size_t damaged_lines = 0;
  // These are lines of starts that other lines show to be missing, at least so many, and the
  // seconds that they told of.
  std::uint64_t missing_lines = 0;
  double missing_s = 0;
  std::vector<StartEnds::OpenEnd> open_ends;  // starts without a line that ends them
  std::uint64_t lost_lines = 0;    // of all kinds, that the library could not write, as it says
  std::size_t repeated_lines = 0;  // that are there twice, and count once
  std::set<std::uint64_t> incarnations;
  std::uint64_t machines = 0;   // the most at a time
  std::uint64_t unmetered = 0;  // of them, the most of whose energy nobody knew anything
  double seconds = 0;           // with those of missing lines
  double gap_s = 0;             // of which no source knows anything, or no line tells
  double covered_s = 0;         // of which the joules are
  Joules whole, program;
  std::string total;  // name of the domains that make it; "mixed"; empty: there is no source
  std::string part;   // of which alone all joules are, "cpu"; empty: of the total
  std::map<std::string, DomainEnergy> domains;  // that any line tells of
  std::set<std::string> hosts;  // digests of the machines, as lines tell; empty text: one does not
  std::set<EnergySource> sources;
  std::set<std::string> slurm_jobs;     // that the starts of the job were parts of
  std::set<std::string> told_apart_by;  // by what a slow meter of the node is told apart in time
  std::set<std::string> left_out;       // boards that no meter tells of, in words
  std::map<PhaseKey, Amount> phases;
  // By version, the seconds of its checkpoints' waits that were for versions in flight to make
  // room. Older ledgers do not tell.
  std::map<std::uint64_t, double> waited_for_room_s;
  std::vector<Rework> rework;
  Processors processors;

  // Returns whether other programs have used half a processor or more of a machine, on the mean;
  // nullopt if not all lines tell.
  std::optional<bool> is_shared() const;
  // Returns the job's part of the whole by processor time; nullopt if not all lines with energy
  // tell it.
  std::optional<Joules> job_part() const;
  std::optional<double> watts() const;  // mean over covered_s
  Amount all_phases() const;
  // Returns how the total is known: "measured", "modelled" or "measured and modelled". The text is
  // empty if there is no source.
  std::string kind() const;
  bool is_of_total(const EnergySource& source) const;
  // Returns the names of the sources of the total.
  std::set<std::string> total_sources() const;
};

// Takes the lines of a ledger one after the other.
class EnergyReader {
 public:
  // `part` is the part of the machine of which the joules are to be: "node", "cpu", "dram" or
  // "gpu". If it is empty, they are of the total.
  explicit EnergyReader(std::string part = "") : part_(std::move(part)) {}
  void add_line(std::string_view line);
  EnergySummary take();

 private:
  // This is the program's part of one energy line.
  struct Stretch {
    double from_unix_s = 0, to_unix_s = 0;
    std::uint64_t incarnation = 0;
    double lost_from_unix_s = 0;  // the work from there on was done again
    Joules joules;
  };
  struct Line;

  bool add_energy(const Line& line);
  void add_domains(const Line& line, bool is_of_all);
  void add_hole(const Hole& hole);
  void add_restart(const Line& line);

  std::string part_;
  EnergySummary summary_;
  std::vector<Stretch> stretches_;
  // The keys are the version and the incarnation.
  std::map<std::uint64_t, std::map<std::uint64_t, double>> captured_unix_s_;
  std::map<std::uint64_t, double> opened_unix_s_;  // by incarnation
  LineSequence sequence_;
  StartEnds starts_;
  EndErrors ends_;
  std::map<std::string, EndErrors> ends_of_domains_;
};

// Returns whether the phase is one of a restart.
bool is_restart_phase(std::string_view phase);

// Returns (value - baseline) / baseline * 100, as published comparisons of checkpointing have it;
// nullopt if either is missing or the baseline is 0.
std::optional<double> percent_more(std::optional<double> value, std::optional<double> baseline);

}  // namespace diapause::cli
