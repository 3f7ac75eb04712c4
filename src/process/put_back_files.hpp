// Makes the files that belong to a job by their names what they were when its image was made.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/job_files.hpp"
#include "process/openings.hpp"

namespace diapause::process {

// Refuses files that cannot be what they were, as far as that is seen without reading them. Code::
// mismatch names the file, and Code::full says where there is no room for what has to be written.
// Nothing is changed.
Status check_files_to_put_back(const Job& job, const std::vector<StoredContents>& contents);

// Writes files that have changed, makes those again that are gone, and cuts those of which the
// image holds the length alone, when all else of the job is in its place.
Status put_back_files(const Job& job, const std::vector<StoredContents>& contents,
                      const ReadContents& read);

// Gives files that belong to the job, but were not there, another name, so that the job does not go
// on with what it has not written yet. Returns their old names. The standard streams of this
// process, and what another program has open for writing, are left alone.
Result<std::vector<std::string>> put_aside_new_files(const Job& job, const FileView& view);

// Returns files in the directories in which the job's processes are that were changed after the
// image was made, and that the image does not hold. It does not look at more than some thousands.
std::vector<std::string> files_changed_since(const Job& job, const FileView& view);
// Returns the paths of the files that the image holds in some way.
std::set<std::string> paths_of_held_files(const Job& job);

// Returns a text such as "a, b, c and 4 more".
std::string some_of(const std::vector<std::string>& names);

}  // namespace diapause::process
