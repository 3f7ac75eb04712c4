// Finishes a job from outside if its program has not done it, as diapause_finish does.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"

namespace diapause::cli {

// A job of the command as the library has noted it for `diapause run`: its places, and what is to
// stay of it.
struct OpenedJob {
  std::string key;
  std::string memory, local, global;  // roots; empty: there is none
  config::FinishKeep keep = config::FinishKeep::nothing;

  bool operator==(const OpenedJob&) const = default;
};

// Returns the jobs in such notes, each once. Other lines are ignored.
std::vector<OpenedJob> parse_opened_jobs(const std::string& notes);

// Finishes a job that does not run. Data on other machines cannot be reached: they do not count any
// more, and the next start there removes them. Returns how many versions were removed. After an
// error the job is unchanged, or finished and not completely removed.
Result<std::uint64_t> finish_job(const OpenedJob& job);

}  // namespace diapause::cli
