// Looks at tiers without being part of a job: it holds no lock, makes and changes nothing, and may
// run beside jobs. A version that it finds may be gone when it is opened.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "store/image_reader.hpp"
#include "store/tier.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// One directory in which versions lie: of one job in the global tier, or of one job and node in
// another.
struct SurveyedPlace {
  config::TierKind kind = config::TierKind::memory;
  std::string job;   // its job key
  std::string node;  // empty in the global tier
  // For a job in the global tier this is the directory that it is a copy of, if that is still
  // there, and empty otherwise. When the copy is started, it becomes a job of its own, and what the
  // nodes hold under this key belongs to the original (store/identity.hpp).
  std::string original;
  sys::Directory directory;
  std::vector<FoundVersion> versions;  // newest first
};

struct Survey {
  std::vector<SurveyedPlace> places;  // by job, then by node
  std::vector<std::string> problems;  // directories that could not be read
};

// Finds all jobs and nodes below the root of a tier. A root that does not exist holds nothing.
Survey survey_root(sys::Kernel& kernel, config::TierKind kind, const std::string& root);

// Returns whether a job uses the place now, as far as this machine can tell.
bool is_in_use(const SurveyedPlace& place);

// Returns every version directory in `place`, newest first. A manifest of another job than that of
// this key counts as damaged; with an empty key any job will do.
Result<std::vector<FoundVersion>> scan_versions(const sys::Directory& place,
                                                std::string_view job_key = "");

// Finds one of them by its number. The result is Code::not_found if it does not exist.
Result<FoundVersion> scan_version(const sys::Directory& place, const format::VersionId& id,
                                  std::string_view job_key = "");

// The ranks whose images lie there, in files of their own or in shared ones, if this is the
// version's manifest (null: there is none).
std::set<std::uint32_t> ranks_in(const FoundVersion& found, const format::Manifest* manifest);

Result<ImageReader> open_image_at(const sys::Directory& directory, const std::string& file,
                                  const ExpectedImage& expected);
Result<ImageReader> open_image_in(const sys::Directory& place, const format::VersionId& version,
                                  const std::string& file, const ExpectedImage& expected);

}  // namespace diapause::store
