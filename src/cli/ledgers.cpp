#include "cli/ledgers.hpp"

#include <fmt/format.h>

#include "cli/collection.hpp"
#include "cli/repeated_lines.hpp"
#include "energy/ledger.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {

namespace {

Result<std::string> ledger_of_job(const std::string& job, const Places& places) {
  Places only_global = places;
  only_global.memory = only_global.local = "";
  DIAPAUSE_TRY_ASSIGN(const Collection collection, collect(only_global));
  DIAPAUSE_TRY_ASSIGN(const std::vector<const Job*> jobs, find_jobs(collection, job));
  if (jobs.size() > 1) {
    return fail(Code::argument,
                fmt::format("there are several jobs '{}'; take a whole name, as {} ({} of them)",
                            job, jobs[0]->key, jobs.size()));
  }
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job == jobs[0]->key) return place.directory.path() + "/" + energy::Ledger::kFileName;
  }
  return fail(Code::not_found, fmt::format("job '{}' has no directory in: {}", job,
                                           fmt::join(collection.roots, ", ")));
}

}  // namespace

Result<std::string> ledger_of(const std::string& name, const Places& places) {
  if (name.find('/') != std::string::npos || name.ends_with(".jsonl")) return name;
  return ledger_of_job(name, places);
}

Result<std::size_t> read_ledger(const std::string& path,
                                const std::function<void(std::string_view)>& each) {
  RepeatedLines repeated;
  DIAPAUSE_TRY(sys::read_lines(sys::real_kernel(), path, [&](std::string_view line) {
    if (repeated.is_new(line)) each(line);
  }));
  return repeated.count();
}

}  // namespace diapause::cli
