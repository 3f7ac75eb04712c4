// `diapause launch`, `checkpoint` and `restart`: jobs that were not written for checkpoints.
#include <fmt/core.h>

#include "agent/agent.hpp"
#include "cli/nodes.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

agent::StoreRequest store_request(const std::string& name, const std::string& config) {
  return {name, config, sys::environment(), standard_error_sink()};
}

static_assert(agent::kStoppedInTime == kStopped);

// Returns the status of the command, or reports why there is none.
int status_of_job(const char* verb, const Result<int>& status) {
  if (status) return *status;
  fmt::print(stderr, "diapause {}: {}\n", verb, printable_lines(status.error().message));
  return kCannotRun;
}

}  // namespace

int launch(const LaunchArguments& arguments) {
  const auto wish = arguments.check ? agent::Wish::check_only : agent::Wish::checkpoint;
  auto nodes = nodes_of(arguments.nodes, Repeated::refused);
  if (!nodes) return status_of_job("launch", fail(nodes.error()));
  const agent::LaunchRequest request{
      store_request(arguments.name, arguments.config),
      arguments.command,
      arguments.interval_s,
      arguments.level,
      wish,
      arguments.continues ? agent::Beginning::from_newest : agent::Beginning::anew,
      std::move(*nodes),
      arguments.files};
  return status_of_job("launch", agent::launch(request));
}

int restart(const RestartArguments& arguments) {
  auto nodes = nodes_of(arguments.nodes, Repeated::allowed);
  if (!nodes) return status_of_job("restart", fail(nodes.error()));
  const agent::RestartRequest request{
      store_request(arguments.name, arguments.config),
      arguments.version,
      arguments.interval_s,
      arguments.level,
      std::move(*nodes),
      arguments.mapped ? agent::MemoryMode::mapped : agent::MemoryMode::eager};
  return status_of_job("restart", agent::restart(request));
}

int checkpoint(const CheckpointArguments& arguments) {
  const auto wish = arguments.check ? agent::Wish::check_only : agent::Wish::checkpoint;
  const auto answer =
      agent::ask(store_request(arguments.name, arguments.config), wish, arguments.level);
  if (!answer) {
    fmt::print(stderr, "diapause checkpoint: {}\n", printable_lines(answer.error().message));
    return kTrouble;
  }
  if (arguments.check) {
    fmt::print("a checkpoint of {} can be taken\n", arguments.name);
  } else {
    fmt::print("version {} at level {}: {}, the job stood still for {:.1f} ms\n", answer->version,
               answer->level, bytes_text(answer->bytes), answer->stopped_s * 1e3);
  }
  return kDone;
}

}  // namespace diapause::cli
