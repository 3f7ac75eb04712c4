// The checkpoints of a job that knows nothing of them, by way of the node engine: the job is one rank, its image holds
// the memory of all its processes, and a region named "processes" says what else they are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "capture/block_source.hpp"
#include "config/settings.hpp"
#include "engine/job/decision.hpp"
#include "engine/node/captures.hpp"
#include "engine/node/node_engine.hpp"
#include "engine/restart/fetch.hpp"

namespace diapause::agent {

struct StoreRequest {
  std::string name;
  std::string config_path;  // empty: none
  config::Environment environment;
  LogSink log;
};

struct Stored {
  std::uint64_t version = 0;
  int level = 0;  // that was reached
  std::uint64_t bytes = 0;
};

class JobStore {
 public:
  // Opens and locks the tiers of the job. Code::busy: a job of that name runs.
  static Result<std::unique_ptr<JobStore>> open(const StoreRequest& request);
  ~JobStore();

  // The greatest number of a version that is there; 0 if there is none.
  std::uint64_t newest_version() const { return next_version_ - 1; }
  // How memory is to be captured, as the user has it.
  config::CaptureStrategy strategy() const { return context_->settings.capture.strategy; }
  std::vector<std::string> referenced_files() const { return context_->settings.capture.referenced_files; }
  // An image of `source`.
  Result<engine::Captures> capture(int level, format::ImageIndex index, capture::BlockSource& source);
  // The rest, for which the job does not wait.
  Result<Stored> store(engine::Captures captures);

  // The newest version that is sound and that `check` lets pass, or the one of that number; the reasons if there is
  // none. What had to be passed over is logged.
  Result<engine::FetchedVersion> fetch(std::optional<std::uint64_t> version,
                                       const std::function<Status(store::ImageReader&)>& check);
  // Tells the ledger that the job goes on from what fetch() gave, after so many seconds.
  void note_restart(const engine::FetchedVersion& fetched, double seconds);
  // The job has ended with this status, as a shell gives it. One that was killed has failed: the ledger has no line of
  // its end, as that of a program that uses the library and is killed.
  void note_end(int status);

 private:
  JobStore() = default;
  Status open_context(const StoreRequest& request);

  std::unique_ptr<engine::Context> context_;
  engine::LedgerWriter ledger_;
  std::unique_ptr<engine::NodeEngine> engine_;
  std::optional<engine::Fetch> fetch_;  // of what is restarted from
  std::string passed_over_;             // by that: newer versions, and why
  std::uint64_t next_version_ = 1;
  bool was_killed_ = false;
  engine::Decider decider_;
};

// Where the agents of a user leave their sockets, and how that of a job is called there.
std::string door_directory(const config::Settings& settings);
std::string door_name(const std::string& job, const config::Settings& settings);
// What is configured for the user; paths absolute.
Result<config::Settings> read_settings(const std::string& config_path, const config::Environment& environment);

}  // namespace diapause::agent
