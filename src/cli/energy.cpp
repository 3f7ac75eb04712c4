// `diapause energy`: who used the energy of a job, from its ledger.
#include <fmt/format.h>

#include "cli/collection.hpp"
#include "cli/energy_report.hpp"
#include "cli/verbs.hpp"
#include "energy/ledger.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

Result<std::string> ledger_of(const std::string& job, const Places& places) {
  Places only_global = places;
  only_global.memory = only_global.local = "";
  DIAPAUSE_TRY_ASSIGN(const Collection collection, collect(only_global));
  DIAPAUSE_TRY_ASSIGN(const std::vector<const Job*> jobs, find_jobs(collection, job));
  if (jobs.size() > 1) {
    return fail(Code::argument, fmt::format("there are several jobs '{}'; take a whole name, as {} ({} of them)", job,
                                            jobs[0]->key, jobs.size()));
  }
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job == jobs[0]->key) return place.directory.path() + "/" + energy::Ledger::kFileName;
  }
  return fail(Code::not_found, fmt::format("job '{}' has no directory in: {}", job, fmt::join(collection.roots, ", ")));
}

Result<NamedEnergy> read_ledger(const std::string& path) {
  EnergyReader reader;
  const Status done = sys::read_lines(sys::real_kernel(), path, [&](std::string_view line) { reader.add_line(line); });
  if (!done) {
    return fail(done.error().code, done.error().message + ": a job writes it if it has a global tier");
  }
  NamedEnergy named{path, reader.take()};
  if (named.energy.energy_lines > 0) return named;
  return fail(Code::not_found, path +
                                   " has no energy line yet: let the job close its instance, or run it again if an " +
                                   "older version of the library wrote this");
}

// A path has a slash or the name of a ledger; everything else is a job.
Result<NamedEnergy> read_baseline(const std::string& name, const Places& places) {
  if (name.find('/') != std::string::npos || name.ends_with(".jsonl")) return read_ledger(name);
  DIAPAUSE_TRY_ASSIGN(const std::string path, ledger_of(name, places));
  return read_ledger(path);
}

}  // namespace

int energy(const EnergyArguments& arguments) {
  const auto path = ledger_of(arguments.job, arguments.places);
  if (!path) return complain(path.error());
  const auto job = read_ledger(*path);
  if (!job) return complain(job.error());
  if (arguments.csv) {
    fmt::print("{}", energy_csv(job->energy));
    return kDone;
  }
  Result<NamedEnergy> baseline;
  if (!arguments.baseline.empty()) baseline = read_baseline(arguments.baseline, arguments.places);
  if (!baseline) return complain(baseline.error());
  const NamedEnergy* const compared = arguments.baseline.empty() ? nullptr : &*baseline;
  if (arguments.json) {
    fmt::print("{}\n", energy_json(*job, compared));
  } else {
    fmt::print("{}", energy_text(*job, compared));
  }
  return kDone;
}

}  // namespace diapause::cli
