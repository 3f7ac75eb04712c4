// This is the front end for jobs that know nothing of this library. It starts a command in
// namespaces of its own or restores it, looks after it until it ends, and takes a checkpoint of it
// on request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/job_store.hpp"
#include "agent/meeting.hpp"
#include "base/result.hpp"

namespace diapause::agent {

// With `last` the job ends with its checkpoint.
enum class Wish { checkpoint, check_only, last };

// This is the status of a job that was ended after its last checkpoint, and is to go on in another
// allocation.
inline constexpr int kStoppedInTime = 75;

struct LaunchRequest {
  StoreRequest store;
  std::vector<std::string> command;
  double interval_s = 0;  // seconds between checkpoints that nobody asks for; 0: none are taken
  int level = 1;          // level of these checkpoints
  // With check_only none is taken, and each new obstacle to them is logged.
  Wish wish = Wish::checkpoint;
  Beginning beginning = Beginning::anew;
  Nodes nodes;
  // Paths, directories and globs that name the files of the job. Where it is continued and there
  // are none, those of its image count.
  std::vector<std::string> files = {};
};

// With `eager` a job runs when it has its memory. With `mapped` it runs at once, and is given its
// memory when it touches it, where this process may do that.
enum class MemoryMode { eager, mapped };

struct RestartRequest {
  StoreRequest store;
  std::optional<std::uint64_t> version;  // number; none: the newest version that is sound
  double interval_s = 0;
  int level = 1;
  Nodes nodes;
  MemoryMode memory = MemoryMode::eager;
};

// Both return the exit status of the command, as a shell gives it, when the job has ended, or
// kStoppedInTime. They block signals of the calling thread, which must be the only thread of the
// process.
Result<int> launch(const LaunchRequest& request);
Result<int> restart(const RestartRequest& request);
// Is the agent of another node, which the first one has started. It reads from standard input what
// to do, and returns when the job has ended.
Result<int> be_invited(const LogSink& log);

// Is the process that translates addresses for a job that was restarted on other machines; see
// process/translator.hpp. It reads from standard input where the nodes are. `ports` is the path of
// the file that nodes on one machine have, or empty. Returns when the job has ended.
int translate(int listener, const std::string& ports);

// This is the answer to a request for a checkpoint.
struct Answer {
  std::uint64_t version = 0;
  int level = 0;
  std::uint64_t bytes = 0;
  double stopped_s = 0;  // seconds for which the job stood still
};
// Asks the agent of a job that runs on this machine for a checkpoint or a check. Fails with
// Code::not_found if no such job runs, or if it ends before it answers.
Result<Answer> ask(const StoreRequest& job, Wish wish, int level);

}  // namespace diapause::agent
