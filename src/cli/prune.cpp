// `diapause prune`: removes versions of jobs that do not run.
#include <fmt/core.h>

#include <algorithm>

#include "cli/captures.hpp"
#include "cli/collection.hpp"
#include "cli/inspection.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

// A place of a job, locked in the way in which a run of the job would lock it.
struct LockedTier {
  const store::SurveyedPlace* place;
  store::Tier tier;
};

Result<std::vector<LockedTier>> lock_places(const Collection& collection, const Job& job,
                                            const std::vector<std::string>& roots) {
  const std::string holder =
      fmt::format("diapause prune, process {} on {}\n", sys::process_id(), sys::host_name());
  std::vector<LockedTier> locked;
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job != job.key) continue;
    const std::string& root = roots[static_cast<std::size_t>(place.kind)];
    DIAPAUSE_TRY_ASSIGN(store::Tier tier, store::Tier::open(sys::real_kernel(), place.kind, root,
                                                            place.job, place.node, false));
    locked.push_back({&place, std::move(tier)});
    if (Status status = locked.back().tier.lock(holder, 0); !status) {
      if (status.error().code == Code::busy)
        status.error().message += "; nothing of this job was removed";
      return fail(std::move(status.error()));
    }
  }
  return locked;
}

// Returns whether a restart could use the version from here. Reads every file and reports the ones
// that prevent it.
bool is_restorable(const Job& job, const CollectedVersion& version, double seen_s) {
  if (version.manifest == nullptr || version.is_captured || version.is_over) return false;
  const VersionInspection found = inspect(version, seen_s);
  if (found.assessment.restorable && !found.vanished) return true;
  for (const store::DamagedFile& damage : found.damages) {
    complain(fmt::format("version {} of {} cannot be restored and does not count as kept: {}: {}",
                         version.id.number, job.key, printable(damage.path),
                         printable(damage.what)));
  }
  return false;
}

// Returns the index from which on all versions are removed: behind the N-th that can be restored. A
// version that cannot be restored from here does not count, but may well be useful elsewhere, so
// newer ones of that kind stay.
std::size_t first_beyond(const Job& job, std::uint64_t keep, double seen_s) {
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < job.versions.size(); ++i) {
    if (kept == keep) return i;
    if (is_restorable(job, job.versions[i], seen_s)) ++kept;
  }
  return job.versions.size();
}

std::vector<const CollectedVersion*> choose(const Job& job, const PruneArguments& arguments,
                                            double seen_s) {
  const std::size_t beyond =
      arguments.keep ? first_beyond(job, *arguments.keep, seen_s) : job.versions.size();
  std::vector<const CollectedVersion*> chosen;
  for (std::size_t i = 0; i < job.versions.size(); ++i) {
    const CollectedVersion& version = job.versions[i];
    const bool named = std::find(arguments.versions.begin(), arguments.versions.end(),
                                 version.id.number) != arguments.versions.end();
    const bool old = i >= beyond && !version.unfinished();
    if (arguments.all || named || old || (arguments.unfinished && version.unfinished()))
      chosen.push_back(&version);
  }
  return chosen;
}

// Removes the manifests first, in all tiers. From then on it is no version, whatever becomes of the
// rest.
Status remove(const CollectedVersion& version, const std::vector<LockedTier>& tiers) {
  const auto everywhere = [&](Status (store::Tier::*step)(const format::VersionId&)
                                  const) -> Status {
    for (const LockedTier& locked : tiers) {
      const bool there = std::any_of(version.parts.begin(), version.parts.end(),
                                     [&](const Part& part) { return part.place == locked.place; });
      if (there) DIAPAUSE_TRY((locked.tier.*step)(version.id));
    }
    return {};
  };
  DIAPAUSE_TRY(everywhere(&store::Tier::unpublish));
  return everywhere(&store::Tier::remove_version);
}

// Removes the versions, or only reports them; returns the bytes.
Result<std::uint64_t> prune_job(const Job& job, const std::vector<LockedTier>& tiers,
                                const PruneArguments& arguments, double seen_s) {
  std::uint64_t freed = 0;
  for (const CollectedVersion* version : choose(job, arguments, seen_s)) {
    const std::uint64_t bytes = stored_bytes(*version).all;
    const std::string where = printable(places_text(*version));
    const char* state = state_of(*version);
    if (!arguments.dry_run) DIAPAUSE_TRY(remove(*version, tiers));
    fmt::print("{} {} version {} (incarnation {}, {}): {} in {}\n",
               arguments.dry_run ? "would remove" : "removed", job.key, version->id.number,
               version->id.incarnation, state, bytes_text(bytes), where);
    freed += bytes;
  }
  return freed;
}

// Returns whether no version of that number is published.
bool is_captured_only(const std::vector<const Job*>& jobs, std::uint64_t number) {
  return std::none_of(jobs.begin(), jobs.end(), [&](const Job* job) {
    return std::any_of(job->versions.begin(), job->versions.end(),
                       [&](const CollectedVersion& version) {
                         return version.id.number == number && !version.is_captured;
                       });
  });
}

Status check_versions_exist(const std::vector<const Job*>& jobs, const PruneArguments& arguments) {
  for (const std::uint64_t number : arguments.versions) {
    const bool there = std::any_of(jobs.begin(), jobs.end(), [&](const Job* job) {
      return std::any_of(
          job->versions.begin(), job->versions.end(),
          [&](const CollectedVersion& version) { return version.id.number == number; });
    });
    if (!there)
      return fail(Code::not_found,
                  fmt::format("there is no version {} of '{}'", number, arguments.job));
    if (is_captured_only(jobs, number)) {
      return fail(
          Code::argument,
          fmt::format("version {} of '{}' was captured and is not published yet: the next start "
                      "does that, and diapause prune {} --all removes it with all others",
                      number, arguments.job, jobs.front()->key));
    }
  }
  return {};
}

// Releases memory that is kept for reuse, except captures of which the next start would make a
// version.
Status clear_spares(const std::vector<LockedTier>& tiers, const Job& job, bool with_captures) {
  for (const LockedTier& locked : tiers) {
    if (with_captures || !may_hold_captures(locked.tier.directory(), job))
      DIAPAUSE_TRY(locked.tier.clear_spares());
  }
  return {};
}

// Returns the jobs that are meant. A name means one job only: what is removed does not come back,
// and the job of that name in another directory may be of another problem.
Result<std::vector<const Job*>> meant_jobs(const Collection& collection, const std::string& name) {
  if (name.empty()) return find_jobs(collection, name);
  DIAPAUSE_TRY_ASSIGN(const Job* const job, find_job(collection, name));
  return std::vector<const Job*>{job};
}

// Collects again once the job's places are locked, because what was seen before may have changed.
Result<std::uint64_t> lock_and_prune(const Collection& seen, const Job& job,
                                     const PruneArguments& arguments) {
  if (arguments.dry_run) return prune_job(job, {}, arguments, seen.seen_s);
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> roots, tier_roots(arguments.places));
  DIAPAUSE_TRY_ASSIGN(std::vector<LockedTier> tiers, lock_places(seen, job, roots));
  DIAPAUSE_TRY_ASSIGN(const Collection collection, collect(arguments.places));
  DIAPAUSE_TRY_ASSIGN(const Job* const now, find_job(collection, job.key));
  for (LockedTier& locked : tiers) {
    const auto same =
        std::find_if(collection.places.begin(), collection.places.end(), [&](const auto& place) {
          return place.directory.path() == locked.place->directory.path();
        });
    if (same == collection.places.end())
      return fail(Code::io, locked.tier.path() + " has vanished");
    locked.place = &*same;
  }
  DIAPAUSE_TRY(clear_spares(tiers, *now, arguments.all));
  return prune_job(*now, tiers, arguments, collection.seen_s);
}

}  // namespace

int prune(const PruneArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto jobs = meant_jobs(*collection, arguments.job);
  if (!jobs) return complain(jobs.error());
  if (const Status there = check_versions_exist(*jobs, arguments); !there)
    return complain(there.error());
  for (const std::string& problem : collection->problems) complain(problem);
  for (const std::string& text : collection->notes) note(text);
  int status = collection->problems.empty() ? kDone : kTrouble;
  std::uint64_t freed = 0;
  for (const Job* job : *jobs) {
    const auto bytes = lock_and_prune(*collection, *job, arguments);
    if (!bytes) status = complain(bytes.error());
    freed += bytes.value_or(0);
  }
  fmt::print("{} {}\n", arguments.dry_run ? "would free" : "freed", bytes_text(freed));
  return status;
}

}  // namespace diapause::cli
