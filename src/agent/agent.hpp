// Front end for jobs that know nothing of us: starts a command in namespaces of its own, or restores it, looks after it
// until it ends, and takes a checkpoint of it when somebody knocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/job_store.hpp"
#include "base/result.hpp"

namespace diapause::agent {

enum class Wish { checkpoint, check_only };

struct LaunchRequest {
  StoreRequest store;
  std::vector<std::string> command;
  double interval_s = 0;         // between checkpoints that nobody asks for; 0: none
  int level = 1;                 // of those
  Wish wish = Wish::checkpoint;  // check_only: they are not taken, and what stands in their way is logged, once each
};

struct RestartRequest {
  StoreRequest store;
  std::optional<std::uint64_t> version;  // none: the newest that is sound
  double interval_s = 0;
  int level = 1;
};

// Both return the exit status of the command, as a shell gives it, once the job has ended. Blocks signals of the
// calling thread, which must be the only one of the process.
Result<int> launch(const LaunchRequest& request);
Result<int> restart(const RestartRequest& request);

// What a job answers to a request for a checkpoint.
struct Answer {
  std::uint64_t version = 0;
  int level = 0;
  std::uint64_t bytes = 0;
  double stopped_s = 0;  // how long the job stood still
};
// Asks the agent of a job that runs on this machine. Code::not_found if none does.
Result<Answer> ask(const StoreRequest& job, Wish wish, int level);

}  // namespace diapause::agent
