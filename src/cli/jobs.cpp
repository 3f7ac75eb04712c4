// `diapause jobs`: lists what each job has left here, and which jobs are gone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/collection.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

// Returns the bytes in one tier directory of a job, including slots kept for reuse.
std::uint64_t bytes_below(const sys::Directory& directory, int depth) {
  std::uint64_t bytes = 0;
  const auto entries = directory.list();
  if (!entries) return bytes;  // the directory was removed meanwhile
  for (const sys::DirectoryEntry& entry : *entries) {
    if (entry.is_directory) {
      const auto child = depth > 0 ? directory.open_child(entry.name) : fail(Code::not_found, "");
      if (child) bytes += bytes_below(*child, depth - 1);
      continue;
    }
    const auto file = directory.open_file(entry.name, sys::Access::read);
    if (file) bytes += file->size().value_or(0);
  }
  return bytes;
}

struct JobRow {
  const Job* job;
  const char* state;
  std::array<std::uint64_t, 3> bytes{};  // by config::TierKind
  StoredBytes stored;                    // of its versions
  std::optional<double> age_s;           // age of the newest version; nullopt: none has a manifest
};

// Returns the state of a job:
//
//   running       a process holds the lock of one of its places
//   gone          nothing is left in the global tier: a job makes its directory there at its first
//   open,
//                 and nothing else here tells where that was
//   finished      the program has finished it and has not been started since
//   not running   none of these
const char* state_of_job(const Job& job, bool is_running, bool has_global,
                         bool looked_into_global) {
  if (is_running) return "running";
  const auto is_over = [](const CollectedVersion& version) { return version.is_over; };
  if (job.finished.incarnation > 0 && std::ranges::all_of(job.versions, is_over)) return "finished";
  return looked_into_global && !has_global ? "gone" : "not running";
}

JobRow row_of_job(const Collection& collection, const Job& job, bool looked_into_global) {
  JobRow row{&job, "", {}, {}, std::nullopt};
  bool is_running = false, has_global = false;
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job != job.key) continue;
    is_running = is_running || store::is_in_use(place);
    has_global = has_global || place.kind == config::TierKind::global;
    row.bytes[static_cast<std::size_t>(place.kind)] += bytes_below(place.directory, 2);
  }
  std::uint64_t newest_ns = 0;
  for (const CollectedVersion& version : job.versions) {
    row.stored += stored_bytes(version);
    if (version.manifest != nullptr)
      newest_ns = std::max(newest_ns, version.manifest->created_unix_ns);
  }
  const std::uint64_t now_ns = sys::unix_time_ns();
  if (newest_ns > 0)
    row.age_s = now_ns > newest_ns ? static_cast<double>(now_ns - newest_ns) / 1e9 : 0;
  row.state = state_of_job(job, is_running, has_global, looked_into_global);
  return row;
}

std::string age_text(const std::optional<double>& age_s) {
  if (!age_s) return "-";
  constexpr std::pair<double, const char*> kUnits[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
  for (const auto& [length_s, unit] : kUnits) {
    if (*age_s >= 2 * length_s) return fmt::format("{:.0f} {}", *age_s / length_s, unit);
  }
  return fmt::format("{:.0f} s", *age_s);
}

std::uint64_t bytes_in(const JobRow& row, config::TierKind kind) {
  return row.bytes[static_cast<std::size_t>(kind)];
}

// Says how idle memory is given back, with the whole names: the plain name may be of several jobs.
void print_way_back(std::uint64_t idle, const std::vector<std::string>& holders) {
  constexpr std::size_t kMostNamed = 3;
  fmt::print(
      "\njobs that do not run occupy {} of memory; if nobody needs one, as from another "
      "directory, this gives it back:\n",
      bytes_text(idle));
  for (std::size_t i = 0; i < std::min(holders.size(), kMostNamed); ++i)
    fmt::print("  diapause prune {} --all\n", holders[i]);
  if (holders.size() > kMostNamed)
    fmt::print("  and so on for {} more\n", holders.size() - kMostNamed);
}

void print_jobs(const std::vector<JobRow>& rows) {
  Table table({{"JOB"},
               {"STATE"},
               {"VERSIONS", Align::right},
               {"NEWEST", Align::right},
               {"AGE", Align::right},
               {"MEMORY", Align::right},
               {"LOCAL", Align::right},
               {"GLOBAL", Align::right},
               {"COPIES", Align::right},
               {"PARITY", Align::right}});
  std::uint64_t idle = 0;
  std::vector<std::string> holders;
  for (const JobRow& row : rows) {
    const CollectedVersion* newest = row.job->newest();
    table.add({row.job->key, row.state, fmt::format("{}", row.job->versions.size()),
               newest == nullptr ? "-" : fmt::format("{}", newest->id.number), age_text(row.age_s),
               bytes_text(bytes_in(row, config::TierKind::memory)),
               bytes_text(bytes_in(row, config::TierKind::local)),
               bytes_text(bytes_in(row, config::TierKind::global)),
               bytes_or_dash(row.stored.copies), bytes_or_dash(row.stored.parity)});
    const std::uint64_t in_memory = bytes_in(row, config::TierKind::memory);
    if (std::string_view(row.state) == "running" || in_memory == 0) continue;
    idle += in_memory;
    holders.push_back(row.job->key);
  }
  fmt::print("{}", table.text());
  if (idle > 0) print_way_back(idle, holders);
}

void print_json(const std::vector<JobRow>& rows) {
  nlohmann::ordered_json document = {{"schema", 1}, {"jobs", nlohmann::ordered_json::array()}};
  for (const JobRow& row : rows) {
    nlohmann::ordered_json one = {{"job", row.job->key},
                                  {"state", row.state},
                                  {"versions", row.job->versions.size()},
                                  {"memory_bytes", bytes_in(row, config::TierKind::memory)},
                                  {"local_bytes", bytes_in(row, config::TierKind::local)},
                                  {"global_bytes", bytes_in(row, config::TierKind::global)},
                                  {"copy_bytes", row.stored.copies},
                                  {"parity_bytes", row.stored.parity}};
    if (const CollectedVersion* newest = row.job->newest()) one["newest"] = newest->id.number;
    if (row.age_s) one["age_s"] = *row.age_s;
    document["jobs"].push_back(std::move(one));
  }
  fmt::print("{}\n",
             document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

int jobs(const JobsArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto found = find_jobs(*collection, arguments.job);
  if (!found) return complain(found.error());
  const auto roots = tier_roots(arguments.places);
  if (!roots) return complain(roots.error());
  const bool looked_into_global =
      !(*roots)[static_cast<std::size_t>(config::TierKind::global)].empty();
  std::vector<JobRow> rows;
  for (const Job* job : *found) rows.push_back(row_of_job(*collection, *job, looked_into_global));
  for (const std::string& problem : collection->problems) complain(problem);
  if (arguments.json) {
    print_json(rows);
  } else if (rows.empty()) {
    fmt::print("no jobs in: {}\n", fmt::join(collection->roots, ", "));
  } else {
    print_jobs(rows);
  }
  return collection->problems.empty() ? kDone : kTrouble;
}

}  // namespace diapause::cli
