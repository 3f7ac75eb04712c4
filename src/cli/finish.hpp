// The end of a job that its program has not finished itself: what diapause_finish does, from outside.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"

namespace diapause::cli {

// As the library has noted it for `diapause run`: where a job of the command lies, and what is to stay of it.
struct OpenedJob {
  std::string key;
  std::string memory, local, global;  // roots; empty: there is none
  config::FinishKeep keep = config::FinishKeep::nothing;

  bool operator==(const OpenedJob&) const = default;
};

// The jobs of such notes, each once; lines that are none are left out.
std::vector<OpenedJob> parse_opened_jobs(const std::string& notes);

// Finishes a job that does not run. What lies on other machines cannot be reached: it counts no more, and the next
// start there removes it. Returns how many versions were removed; an error leaves the job as it is, or finished and not
// all removed.
Result<std::uint64_t> finish_job(const OpenedJob& job);

}  // namespace diapause::cli
