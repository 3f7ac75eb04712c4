// `diapause energy`: who used the energy of a job, from its ledger.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/energy_report.hpp"
#include "cli/ledgers.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {
namespace {

Result<NamedEnergy> read_energy(const std::string& path, const std::string& part) {
  EnergyReader reader(part);
  energy::MeasuredJobReader measured;
  const auto repeated = read_ledger(path, [&](std::string_view line) {
    reader.add_line(line);
    measured.add_line(line);
  });
  if (!repeated) {
    return fail(repeated.error().code,
                repeated.error().message + ": a job writes it if it has a global tier");
  }
  NamedEnergy named{path, reader.take(), measured.job()};
  named.energy.repeated_lines = *repeated;
  if (named.energy.other_schema) {
    return fail(Code::corrupt, fmt::format("{} has schema {}, and this version reads 1 and 2", path,
                                           *named.energy.other_schema));
  }
  if (named.energy.energy_lines > 0 && !part.empty() && named.energy.total.empty()) {
    std::string domains;
    for (const auto& [domain, energy] : named.energy.domains)
      domains += (domains.empty() ? "" : ", ") + printable(domain);
    return fail(Code::not_found, fmt::format("{} tells nothing of {} alone; it has {}", path, part,
                                             domains.empty() ? "no energy" : domains));
  }
  if (named.energy.energy_lines > 0) return named;
  if (const auto damaged = named.energy.damaged_lines; damaged > 0) {
    return fail(Code::corrupt,
                fmt::format("{} has no sound energy line, and {} damaged ones", path, damaged));
  }
  return fail(
      Code::not_found,
      path + " has no energy line yet: let the job close its instance, or run it again if an " +
          "older version of the library wrote this");
}

}  // namespace

int energy(const EnergyArguments& arguments) {
  const auto path = ledger_of(arguments.job, arguments.places);
  if (!path) return complain(path.error());
  auto job = read_energy(*path, arguments.part);
  if (!job) return complain(job.error());
  if (arguments.part.empty() && !arguments.csv) job->slurm = ask_sacct(job->energy.slurm_jobs);
  if (arguments.csv) {
    fmt::print("{}", energy_csv(job->energy));
    return kDone;
  }
  std::vector<NamedEnergy> baselines;
  for (const std::string& name : arguments.baselines) {
    auto baseline = ledger_of(name, arguments.places).and_then([&](const std::string& ledger) {
      return read_energy(ledger, arguments.part);
    });
    if (!baseline) return complain(baseline.error());
    baselines.push_back(std::move(*baseline));
  }
  if (arguments.json) {
    fmt::print("{}\n", energy_json(*job, baselines));
  } else {
    fmt::print("{}", energy_text(*job, baselines));
  }
  return kDone;
}

}  // namespace diapause::cli
