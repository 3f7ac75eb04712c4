#include "cli/finish.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "cli/collection.hpp"
#include "store/finished.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

std::optional<OpenedJob> parse_line(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t end = line.find('\t');
    words.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  if (words.size() != 5 || words[0].empty()) return std::nullopt;
  int keep = 0;
  const char* const end = words[4].data() + words[4].size();
  const bool is_number = std::from_chars(words[4].data(), end, keep).ptr == end;
  if (!is_number || keep < 0 || keep > static_cast<int>(config::FinishKeep::all))
    return std::nullopt;
  return OpenedJob{words[0], words[1], words[2], words[3], static_cast<config::FinishKeep>(keep)};
}

Result<std::vector<store::Tier>> lock_tiers(const Collection& collection, const OpenedJob& job) {
  const std::string holder =
      fmt::format("diapause run, process {} on {}\n", sys::process_id(), sys::host_name());
  const std::string* const roots[] = {&job.memory, &job.local, &job.global};  // by config::TierKind
  std::vector<store::Tier> tiers;
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job != job.key) continue;
    const std::string& root = *roots[static_cast<std::size_t>(place.kind)];
    DIAPAUSE_TRY_ASSIGN(store::Tier tier, store::Tier::open(sys::real_kernel(), place.kind, root,
                                                            place.job, place.node, false));
    DIAPAUSE_TRY(tier.lock(holder, 5));
    tiers.push_back(std::move(tier));
  }
  return tiers;
}

Result<store::FinishedMark> mark_of_end(const Job& found, const OpenedJob& job) {
  store::FinishedMark mark;
  for (const CollectedVersion& version : found.versions) {
    mark.incarnation = std::max(mark.incarnation, version.id.incarnation);
    const bool is_global = std::ranges::any_of(version.parts, [](const Part& part) {
      return part.place->kind == config::TierKind::global;
    });
    const bool can_stay = version.manifest != nullptr && is_global && !mark.archive;
    if (can_stay && job.keep == config::FinishKeep::last) mark.archive = version.id;
  }
  if (job.keep == config::FinishKeep::last && !mark.archive) {
    return fail(Code::not_found,
                fmt::format("{} is not finished: there is no version of level 4 to keep", job.key));
  }
  return mark;
}

Result<std::uint64_t> remove_all(const std::vector<store::Tier>& tiers,
                                 const store::FinishedMark& mark) {
  std::set<format::VersionId> removed;
  for (const store::Tier& tier : tiers) {
    DIAPAUSE_TRY_ASSIGN(const std::vector<store::FoundVersion> found, tier.scan());
    for (auto version = found.rbegin(); version != found.rend(); ++version) {
      if (tier.kind() == config::TierKind::global && version->id == mark.archive) continue;
      DIAPAUSE_TRY(tier.remove_version(version->id));
      removed.insert(version->id);
    }
    DIAPAUSE_TRY(tier.clear_spares());
  }
  return removed.size();
}

}  // namespace

std::vector<OpenedJob> parse_opened_jobs(const std::string& notes) {
  std::vector<OpenedJob> jobs;
  for (std::string_view rest = notes; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto job = parse_line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (job && std::ranges::find(jobs, *job) == jobs.end()) jobs.push_back(*job);
  }
  return jobs;
}

Result<std::uint64_t> finish_job(const OpenedJob& job) {
  if (job.keep == config::FinishKeep::all) return 0;
  const Places places{"", job.memory, job.local, job.global};
  DIAPAUSE_TRY_ASSIGN(const Collection collection, collect(places));
  const auto found =
      std::ranges::find_if(collection.jobs, [&](const Job& one) { return one.key == job.key; });
  // The program has finished it.
  if (found == collection.jobs.end() || found->versions.empty()) return 0;
  DIAPAUSE_TRY_ASSIGN(const std::vector<store::Tier> tiers, lock_tiers(collection, job));
  const auto global = std::ranges::find_if(
      tiers, [](const store::Tier& tier) { return tier.kind() == config::TierKind::global; });
  if (global == tiers.end()) {
    return fail(Code::not_found, fmt::format("{} is not finished: its directory in {} is not there",
                                             job.key, job.global));
  }
  DIAPAUSE_TRY_ASSIGN(const store::FinishedMark before, store::read_finished(global->directory()));
  DIAPAUSE_TRY_ASSIGN(const store::FinishedMark mark, mark_of_end(*found, job));
  if (mark.incarnation <= before.incarnation) return 0;  // the program keeps what is there
  DIAPAUSE_TRY(store::write_finished(global->directory(), mark));
  return remove_all(tiers, mark);
}

}  // namespace diapause::cli
