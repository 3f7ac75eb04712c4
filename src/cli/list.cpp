// `diapause list`: lists all versions in all tiers.
#include <fmt/format.h>

#include "cli/collection.hpp"
#include "cli/json_report.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {
namespace {

std::vector<std::string> row_of(const Job& job, const CollectedVersion& version) {
  std::string state = state_of(version);
  if (version.manifest != nullptr && !version.problems().empty()) state += ", manifest damaged";
  std::vector<std::string> row = {job.key, fmt::format("{}", version.id.number),
                                  fmt::format("{}", version.id.incarnation)};
  if (version.manifest == nullptr) {
    row.insert(row.end(), {"", "", ""});
  } else {
    row.insert(row.end(), {levels_text(*version.manifest),
                           version.is_captured ? "" : time_text(version.manifest->created_unix_ns),
                           bytes_text(data_bytes(*version.manifest))});
  }
  const std::string compression =
      version.manifest == nullptr ? "" : compression_text(*version.manifest);
  const StoredBytes stored = stored_bytes(version);
  row.insert(row.end(),
             {bytes_text(stored.all), bytes_or_dash(stored.copies), bytes_or_dash(stored.parity),
              compression.empty() ? "-" : compression, state, printable(places_text(version))});
  return row;
}

void print_table(const std::vector<const Job*>& jobs) {
  Table table({{"JOB"},
               {"VERSION", Align::right},
               {"INCARNATION", Align::right},
               {"LEVELS"},
               {"TIME"},
               {"DATA", Align::right},
               {"STORED", Align::right},
               {"COPIES", Align::right},
               {"PARITY", Align::right},
               {"COMPRESSED"},
               {"STATE"},
               {"WHERE"}});
  std::string problems;
  for (const Job* job : jobs) {
    for (const CollectedVersion& version : job->versions) {
      table.add(row_of(*job, version));
      for (const std::string& problem : version.problems()) {
        problems += fmt::format("{} {}: {}\n", job->key, version.id.number, printable(problem));
      }
    }
  }
  if (!table.empty()) fmt::print("{}{}", table.text(), problems);
}

}  // namespace

int list(const ListArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto jobs = find_jobs(*collection, arguments.job);
  if (!jobs) return complain(jobs.error());
  for (const std::string& problem : collection->problems) complain(problem);
  for (const std::string& text : collection->notes) note(text);
  bool any = false;
  for (const Job* job : *jobs) any = any || !job->versions.empty();
  if (arguments.json) {
    fmt::print("{}\n", list_json(*collection, *jobs));
  } else if (any) {
    print_table(*jobs);
  } else {
    fmt::print("no checkpoints in: {}\n", fmt::join(collection->roots, ", "));
  }
  return collection->problems.empty() ? kDone : kTrouble;
}

}  // namespace diapause::cli
