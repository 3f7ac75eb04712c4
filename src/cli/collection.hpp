// Everything that can be reached from this machine, arranged by job and version.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "config/settings.hpp"
#include "redundancy/survival.hpp"
#include "store/finished.hpp"
#include "store/orphaned_images.hpp"
#include "store/survey.hpp"

namespace diapause::cli {

// The part of one version in one place.
struct Part {
  const store::SurveyedPlace* place = nullptr;
  const store::FoundVersion* found = nullptr;
  // The places of a capture's images, by their future names.
  std::map<std::string, store::OrphanedImage> captured;
};

struct CollectedVersion {
  format::VersionId id;
  std::vector<Part> parts;
  // The parts' manifest with most levels; null: there is none.
  const format::Manifest* manifest = nullptr;
  // It was not published when the job ended; the next start publishes it (captures.hpp).
  bool is_captured = false;
  bool is_over = false;     // it is of a job that the program has finished: no restart uses it
  bool is_archive = false;  // the program kept it when it finished the job

  std::vector<std::string> problems() const;  // problems of its manifests and directories
  // Returns true if there is no manifest and no trace of one: then it never was a version.
  bool unfinished() const { return manifest == nullptr && problems().empty(); }
};

using VersionsById = std::map<format::VersionId, CollectedVersion>;

struct Job {
  std::string key;
  std::vector<CollectedVersion> versions;  // newest first
  store::FinishedMark finished;

  // Returns the version that a restart would try first; null if there is none.
  const CollectedVersion* newest() const;
};

struct Collection {
  std::vector<store::SurveyedPlace> places;
  std::vector<Job> jobs;  // refer to `places`
  std::vector<std::string> problems;
  double seen_s = 0;                         // sys::monotonic_s() after everything was read
  std::deque<store::FoundVersion> captured;  // versions made of captures
  std::vector<std::string> notes;            // remarks for the reader that are no problems
  // The searched directories, such as "memory /dev/shm/diapause-1000".
  std::vector<std::string> roots;
};

// Returns the settings from the named file, or else from the one in DIAPAUSE_CONFIG, overridden by
// the environment.
Result<config::Settings> read_settings(const std::string& config_file);

// Returns the absolute directories of the tiers, indexed by config::TierKind; empty if there is
// none.
Result<std::vector<std::string>> tier_roots(const Places& places);

Result<Collection> collect(const Places& places);

// Returns the jobs with that name or key; all for "". Code::not_found if there are none, and
// Code::io if there may be one where nobody could look.
Result<std::vector<const Job*>> find_jobs(const Collection& collection, const std::string& name);

// Returns the one job with that name or key, fails like find_jobs(), and with Code::argument and
// all keys if there are several: the same name in another directory is another job.
Result<const Job*> find_job(const Collection& collection, const std::string& name);

// Returns what remains of a version, judged by names. The content of files is checked by `verify`.
redundancy::Remains remains_by_name(const CollectedVersion& version);

// Returns the state of a version:
//
//   complete    it could be restored from what can be reached from here
//   partial     parts that a restart needs are lost or out of reach
//   damaged     no sound manifest is left
//   captured    whole, and not published when the job ended: the next start makes a version of it
//   finished    left over from a job that the program has finished: the next start removes it
//   archive     whole, and kept by the program when it finished the job: the next start begins anew
//   unfinished  a checkpoint that is being taken, or that was interrupted
const char* state_of(const CollectedVersion& version);

// Opens an image of a version in that part of it.
Result<store::ImageReader> open_image(const Part& part, const std::string& name,
                                      const store::ExpectedImage& expected);

std::uint64_t data_bytes(const format::Manifest& manifest);  // the protected bytes of all ranks

// The bytes of the files that can be reached, by what they are for.
struct StoredBytes {
  std::uint64_t all = 0;     // with manifests
  std::uint64_t images = 0;  // of ranks on their own nodes, and in the global tier
  std::uint64_t copies = 0;  // of images of other nodes' ranks: partner copies
  std::uint64_t parity = 0;

  StoredBytes& operator+=(const StoredBytes& other);
};
StoredBytes stored_bytes(const CollectedVersion& version);
// The same in one of the parts of that version.
StoredBytes stored_bytes(const CollectedVersion& version, const Part& part);

// Describes the compression in the global tier, such as "1/2.3, within 1e-06"; empty if nothing is
// compressed.
std::string compression_text(const format::Manifest& manifest);

// Describes the places of the parts for people, such as "memory node0 node1, global".
std::string places_text(const CollectedVersion& version);

}  // namespace diapause::cli
