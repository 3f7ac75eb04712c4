#include "cli/energy_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/energy_amounts.hpp"
#include "cli/energy_comparison.hpp"
#include "cli/text.hpp"
#include "energy/total.hpp"

namespace diapause::cli {

std::string source_text(const EnergySummary& energy) {
  if (energy.total.empty()) return "no source";
  return printable(fmt::format("{} ({}: {})", energy.total, energy.kind(),
                               fmt::join(energy.total_sources(), ", ")));
}

namespace {

// Returns how often each phase was slowed, and how far.
std::string slowed_text(const EnergySummary& energy) {
  std::map<std::string, Amount> sums;
  for (const auto& [key, amount] : energy.phases) sums[key.phase].add(amount);
  std::string text;
  for (const auto& [phase, sum] : sums) {
    const Slowed& slowed = sum.slowed;
    if (slowed.times == 0) continue;
    text += fmt::format(
        "{} of {} times {} ran at {:.3f} of the base clock or more ({:.3f} asked for; actuator: "
        "{})\n",
        slowed.times, sum.times, printable(phase), slowed.obtained, slowed.asked,
        printable(fmt::format("{}", fmt::join(slowed.actuators, ", "))));
  }
  return text;
}

// Returns how far the energy may be off, by cause.
std::string uncertainty_text(const EnergySummary& energy) {
  if (energy.whole.known == 0) return "";
  std::string text;
  if (const Joules phases = energy.all_phases().joules; phases.doubted > 0)
    text += fmt::format("all phases: {}, off by at most: {}\n", joules_text(phases),
                        parts_text(phases));
  text +=
      "SAMPLING: samples are apart; SENSOR: the source itself, or its model; CHARGED: who is "
      "charged\n";
  if (energy.whole.is_estimate()) {
    text +=
        "energies with ~ are estimates without a bound, as nobody knows how far they are off; "
        "shares and\n"
        "comparisons of runs on one machine are surer\n";
  }
  for (const EnergySource& one : energy.sources) {
    if (!energy.is_of_total(one) || one.accuracy.empty()) continue;
    text += printable(fmt::format("{} {}: {}", one.source, one.domain, one.accuracy)) + "\n";
  }
  return text;
}

// Returns sources that tell of what the total does not have, and boards of which none tells.
std::string left_out_text(const EnergySummary& energy) {
  std::string text;
  for (const std::string& boards : energy.left_out) text += printable(boards) + "\n";
  if (energy.total.empty() || energy.total == "mixed" || !energy.part.empty()) return text;
  for (const std::string& parts : energy.told_apart_by) {
    text += printable(fmt::format(
                "phases are told apart by {}, calibrated against the slower meter of the total",
                parts)) +
            "\n";
  }
  for (const EnergySource& one : energy.sources) {
    const auto* const name = std::ranges::find(energy::kDomainNames, one.domain);
    if (name == energy::kDomainNames.end() || *name == "other") continue;
    const auto domain = static_cast<energy::Domain>(name - energy::kDomainNames.begin());
    if (energy::is_covered(energy.total, domain)) continue;
    text += printable(fmt::format("seen, and not in the total: {} ({}: {})", one.domain, one.kind,
                                  one.source)) +
            "\n";
  }
  return text;
}

// Returns the job's part of nodes that other programs used too.
std::string sharing_text(const EnergySummary& energy) {
  if (!energy.is_shared().value_or(false)) return "";
  const Processors& used = energy.processors;
  std::string text = fmt::format(
      "whole nodes, shared with others: {:.0f} % of the processor time was used by others",
      100 * used.others_s / (used.job_s + used.others_s));
  const auto job = energy.job_part();
  if (!job) return text + "\n";
  return text + fmt::format(
                    "; by processor time\nthe job's part is {}, if processors draw at most twice "
                    "as much for one program "
                    "as for another\n",
                    joules_text(*job) + short_parts_text(*job));
}

// Returns what the ledger lacks, and what it has twice.
std::string lines_text(const EnergySummary& energy) {
  std::string text;
  if (energy.missing_lines > 0) {
    text += fmt::format(
        "at least {} lines of the ledger are missing, of {:.3f} s: the energy of that time is in "
        "no "
        "number\n",
        energy.missing_lines, energy.missing_s);
  }
  for (const StartEnds::OpenEnd& end : energy.open_ends) {
    const std::string seconds = end.seconds ? fmt::format("{:.2f} s", *end.seconds) : "";
    if (end.was_closed) {
      text += fmt::format(
          "start {} lacks its last energy lines: what it used in {} is in no "
          "number\n",
          end.incarnation, seconds.empty() ? "all its time" : "its last " + seconds);
    } else {
      text += fmt::format(
          "start {} has no line that ends it: it was killed, it still runs, or the end of the "
          "ledger\n"
          "is missing; what it used after its last line{} is in no number\n",
          end.incarnation, seconds.empty() ? "" : ", for at most " + seconds + ",");
    }
  }
  if (energy.lost_lines > 0) {
    text +=
        fmt::format("{} lines of the ledger could not be written while the job ran, and are lost\n",
                    energy.lost_lines);
  }
  if (energy.repeated_lines > 0) {
    text += fmt::format("{} lines of the ledger are there twice, and count once\n",
                        energy.repeated_lines);
  }
  return text;
}

// Returns Slurm's number of the same jobs. Its energy has the time before and after the program, so
// that powers are compared.
std::string slurm_text(const NamedEnergy& job) {
  if (!job.slurm) return "";
  const SlurmEnergy& slurm = *job.slurm;
  std::string text = fmt::format(
      "by Slurm's accounting (ConsumedEnergy of {}): {} in {}, without a "
      "bound",
      fmt::join(slurm.jobs, ", "), rounded_text(slurm.joules, 3, "J"),
      fmt::format("{:.2f} s", slurm.seconds));
  const auto watts = job.energy.watts();
  if (!(slurm.seconds > 0) || !watts || !(*watts > 0)) return printable(text) + "\n";
  const double slurm_w = slurm.joules / slurm.seconds;
  text += fmt::format(", a mean power of {}; the ledger has {} ({:+.1f} %)",
                      rounded_text(slurm_w, 3, "W"), rounded_text(*watts, 3, "W"),
                      100 * (*watts / slurm_w - 1));
  return printable(text) + "\n";
}

}  // namespace

std::string rework_text(const Rework& rework) {
  const std::string start =
      fmt::format("start {} went back to version {}: ", rework.incarnation, rework.version);
  if (!rework.is_known)
    return start + "how much work was done again is not known, no line tells of its capture\n";
  std::string text = start;
  if (rework.seconds < 0.005) {
    text += "no work that a line tells of was for nothing";
  } else if (rework.joules.known == 0) {
    text += fmt::format("{:.2f} s of the program were for nothing", rework.seconds);
  } else {
    text += fmt::format("{:.2f} s and {}{} of the program were for nothing", rework.seconds,
                        joules_text(rework.joules), short_parts_text(rework.joules));
  }
  if (rework.unaccounted_s) {
    text += fmt::format(", and what it did after its last line, {:.2f} s before this start",
                        *rework.unaccounted_s);
  }
  return text + "\n";
}

std::string notes_text(const NamedEnergy& job) {
  const EnergySummary& energy = job.energy;
  std::string text =
      slurm_text(job) + sharing_text(energy) + uncertainty_text(energy) + slowed_text(energy);
  text += left_out_text(energy);
  if (energy.gap_s > 0) {
    text += fmt::format("no source knows anything of {:.3f} s; their energy is in no number\n",
                        energy.gap_s);
  }
  if (energy.unmetered > 0) {
    text += fmt::format(
        "of {} of {} machines the energy is unknown, of some of the time at least, and in no "
        "number\n",
        energy.unmetered, energy.machines);
  }
  const Amount phases = energy.all_phases();
  if (phases.joules.unknown > 0) {
    text += fmt::format("of {} of {} phases the energy is unknown; it counts as the program's\n",
                        phases.joules.unknown, phases.times);
  }
  if (energy.whole.is_partial()) {
    text += fmt::format("in {} of {} lines the energy of the whole, or of a machine, is missing\n",
                        energy.whole.unknown + energy.whole.absent,
                        energy.energy_lines + energy.missing_lines);
  }
  text += lines_text(energy);
  if (energy.damaged_lines > 0) {
    text += fmt::format("{} damaged: {} lines are left out, whole or in part\n",
                        printable(job.ledger), energy.damaged_lines);
  }
  return text;
}

std::string comparison_notes(const EnergySummary& energy, std::span<const NamedEnergy> baselines) {
  std::string text;
  if (baselines.empty()) return text;
  for (const NamedEnergy& one : baselines) {
    const EnergySummary& baseline = one.energy;
    if (energy.total == baseline.total && energy.kind() == baseline.kind()) continue;
    text += fmt::format("beware: the baseline's energy is known otherwise: {}\n",
                        source_text(baseline));
  }
  const auto on_others = [&](const NamedEnergy& one) {
    return one.energy.whole.known > 0 && !share_machines(energy, one.energy);
  };
  if (energy.whole.known > 0 && std::ranges::any_of(baselines, on_others)) {
    text +=
        "the runs were on different machines, or nobody knows on which: how far the sources may be "
        "off\n"
        "counts on both sides\n";
  }
  for (const NamedEnergy& one : baselines) {
    if (one.energy.machines == energy.machines) continue;
    text += fmt::format("beware: machines of the job: {}; of the baseline: {}\n", energy.machines,
                        one.energy.machines);
  }
  const auto is_partial = [](const EnergySummary& one) { return one.whole.is_partial(); };
  if (is_partial(energy) || std::ranges::any_of(baselines, is_partial, &NamedEnergy::energy))
    text += "energy of one side is missing in part: neither power nor energy is compared\n";
  if (baselines.size() == 1) {
    text +=
        "how far two runs of the same differ is in no change: --baseline may be given again, for "
        "more runs of it\n";
  }
  return text;
}

}  // namespace diapause::cli
