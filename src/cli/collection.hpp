// Everything that can be reached from here, put together by job and version.
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

// What one place has of one version.
struct Part {
  const store::SurveyedPlace* place = nullptr;
  const store::FoundVersion* found = nullptr;
  std::map<std::string, store::OrphanedImage>
      captured;  // of a capture: where its images lie, by the names they would get
};

struct StoredVersion {
  format::VersionId id;
  std::vector<Part> parts;
  const format::Manifest* manifest = nullptr;  // of the parts' the one that knows of most levels; null: there is none
  bool is_captured = false;  // it was not published when the job ended, and the next start does that (captures.hpp)
  bool is_over = false;      // the program had finished the job when this was its version: no restart takes it
  bool is_archive = false;   // and it was to stay

  std::vector<std::string> problems() const;  // of its manifests and directories
  // Without a manifest and without a trace of one it never was a version.
  bool unfinished() const { return manifest == nullptr && problems().empty(); }
};

using VersionsById = std::map<format::VersionId, StoredVersion>;

struct Job {
  std::string key;
  std::vector<StoredVersion> versions;  // newest first
  store::FinishedMark finished;

  // What a restart would try first; null if there is nothing to restart from.
  const StoredVersion* newest() const;
};

struct Collection {
  std::vector<store::SurveyedPlace> places;
  std::vector<Job> jobs;  // point into `places`
  std::vector<std::string> problems;
  double seen_s = 0;                         // sys::monotonic_s() after all was seen
  std::deque<store::FoundVersion> captured;  // of versions that are
  std::vector<std::string> notes;            // what a reader has to know beside the versions, and what is no trouble
  std::vector<std::string> roots;            // where was looked, "memory /dev/shm/diapause-1000"
};

// What is configured: the file of that name, else the one in DIAPAUSE_CONFIG, and the environment over it.
Result<config::Settings> read_settings(const std::string& config_file);

// The directories of the tiers, absolute, empty where there is none; indexed by config::TierKind.
Result<std::vector<std::string>> tier_roots(const Places& places);

Result<Collection> collect(const Places& places);

// The jobs of that name or key; all for "". Code::not_found if there are none.
Result<std::vector<const Job*>> find_jobs(const Collection& collection, const std::string& name);

// Judged by names: what is in the files is `verify`'s business.
redundancy::Remains remains_by_name(const StoredVersion& version);

//   complete    could be restored from what can be reached from here
//   partial     parts that it takes are lost or out of reach
//   damaged     no manifest is left whole
//   captured    whole, and not published when the job ended: the next start makes a version of it
//   finished    left over from a job that the program has finished: the next start begins anew and removes it
//   archive     whole, and kept by the program when it finished the job: the next start begins anew beside it
//   unfinished  a checkpoint that is being taken, or that did not come to its end
const char* state_of(const StoredVersion& version);

// An image of a version, wherever it lies in that part of it.
Result<store::ImageReader> open_image(const Part& part, const std::string& name, const store::ExpectedImage& expected);

std::uint64_t data_bytes(const format::Manifest& manifest);  // protected, of all ranks
std::uint64_t stored_bytes(const StoredVersion& version);    // of all files that can be reached

// Of the images in the global tier, "1/2.3, within 1e-06"; empty if none is compressed.
std::string compression_text(const format::Manifest& manifest);

// Where parts are, for people: "memory node0 node1, global".
std::string places_text(const StoredVersion& version);

}  // namespace diapause::cli
