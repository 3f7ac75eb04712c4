// Stores the checkpoints of a job that knows nothing of them, taken by the node engine. The job is
// one rank. Its image holds the memory of all its processes, and a region named "processes"
// describes everything else about them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/doubts.hpp"
#include "agent/increments.hpp"
#include "base/log.hpp"
#include "capture/block_source.hpp"
#include "capture/capturer.hpp"
#include "config/settings.hpp"
#include "engine/job/decision.hpp"
#include "engine/node/captures.hpp"
#include "engine/node/node_engine.hpp"
#include "engine/restart/fetch.hpp"

namespace diapause::agent {

struct StoreRequest {
  std::string name;
  std::string config_path;  // configuration file; empty: as DIAPAUSE_CONFIG says, or none
  config::Environment environment;
  LogSink log;
};

struct Stored {
  std::uint64_t version = 0;
  int level = 0;  // deepest level that was reached
  std::uint64_t bytes = 0;
};

// These are the agents that the checkpoints of a job are taken by.
struct Ranks {
  std::unique_ptr<comm::Comm> comm;  // null if this agent is alone
  // These are the names of nodes that are all this machine. If there are none, the nodes are real.
  std::vector<std::string> emulated_nodes;
};

// All calls are collective among the agents of the job, and succeed on all or fail on all.
class JobStore {
 public:
  // Opens and locks the tiers of the job. Fails with Code::busy if a job of that name runs.
  static Result<std::unique_ptr<JobStore>> open(const StoreRequest& request, Ranks ranks);
  ~JobStore();

  const engine::Context& context() const { return *context_; }
  // Returns the greatest number of a stored version, or 0 if there is none.
  std::uint64_t newest_version() const { return next_version_ - 1; }
  // Returns how memory is to be captured, as the user has configured it.
  config::CaptureStrategy strategy() const { return context_->settings.capture.strategy; }
  std::vector<std::string> referenced_files() const {
    return context_->settings.capture.referenced_files;
  }
  unsigned copying_threads() const {
    return capture::copying_threads(context_->settings.capture, context_->share.cores);
  }
  double audit_percent() const { return context_->settings.capture.audit_percent; }
  // Captures `source` in an image. If only that fails, the result says so, and store() must still
  // be called. `increments`, if given, has begun this capture, of `dump`: it is told where the
  // image lies, and asked for the blocks.
  struct Incremental {
    Increments& increments;
    const process::Dump& dump;
  };
  Result<engine::Captures> capture(int level, format::ImageIndex index,
                                   capture::BlockSource& source,
                                   std::optional<Incremental> incremental = std::nullopt);
  // Does the rest of the checkpoint, for which the job does not wait. The version before stays
  // until give_up_older().
  Result<Stored> store(engine::Captures captures);
  // Removes the version that stays beside the last one, unless that is doubtful on any node. To be
  // called before the next capture.
  Status give_up_older(bool is_doubtful);
  // Puts the last version in doubt, that was stored or that the job was restored from: a restart
  // takes another one, if it can. Returns its number. Not collective.
  Result<std::uint64_t> doubt();

  // Returns the newest version that is sound and that `check` accepts, or the version of the given
  // number if it is so. Versions in doubt come last. Fails with Code::not_found if there are no
  // versions, and with Code::corrupt and the reasons if none of them can be used. Versions that had
  // to be passed over are logged. With Purpose::place and Purpose::map_unchecked the image may not
  // have been checked yet, beyond what `check` reads of it.
  using Check = std::function<Status(store::ImageReader&)>;
  Result<engine::FetchedVersion> fetch(std::optional<std::uint64_t> version, const Check& check,
                                       engine::Purpose purpose);
  // `mine` says whether the images that fetch() has given were sound when they were read. Returns
  // whether that is so. Otherwise fetch() is to be called again: it gives images that were checked
  // before, of the same version if they can be had, or of another one.
  Result<bool> was_sound(const Status& mine);
  // Does the same for a job that runs already: only the same version will do.
  Result<engine::FetchedVersion> fetch_other_copy(const Status& mine);
  // Writes to the ledger that the job goes on from the version that fetch() gave, and accounts for
  // what the restart did. It began, and began to make the job's processes, at these times of
  // sys::monotonic_s().
  struct RestartTimes {
    double begun_s = 0, restoring_s = 0;
  };
  void note_restart(const engine::FetchedVersion& fetched, const RestartTimes& times);
  // A phase of a checkpoint begins or ends now.
  void mark() { engine_->mark(); }
  // Notes that the job has ended with this status, as a shell gives it. A job that was killed has
  // failed: like a killed program that uses the library, it has no line of its end in the ledger.
  void note_end(int status);
  // Says that the work of the job is done: its versions are removed, except as finish.keep says,
  // and no start goes on from them. Nothing may be stored afterwards.
  Status finish();

 private:
  JobStore() = default;
  Status open_context(const StoreRequest& request, Ranks ranks);

  Result<store::Slot> acquire_slot(engine::Captures& captures, std::uint64_t bytes);
  Status add_increment(engine::Captures& captures, const engine::ImagePlan& plan,
                       capture::BlockSource& source, const Incremental& incremental,
                       store::Slot slot);
  // Puts versions in doubt behind the others.
  Status put_last_what_is_doubted(engine::Inventory& inventory,
                                  std::vector<std::string>& reasons) const;
  // Returns a version whose images are looked for wherever they are held.
  Result<engine::FetchedVersion> get_usable(const Check& check);
  static Status add_image(engine::Captures& captures, const engine::ImagePlan& plan,
                          capture::BlockSource& source, store::Slot slot);

  std::unique_ptr<engine::Context> context_;
  engine::LedgerWriter ledger_;
  std::unique_ptr<engine::NodeEngine> engine_;
  std::optional<engine::Fetch> fetch_;  // fetch of the version from which the job is restarted
  std::optional<format::VersionId> fetched_;
  std::map<format::VersionId, std::string> lost_;  // versions that are damaged, and why
  std::string passed_over_;  // newer versions that this fetch has passed over, and why
  std::optional<Doubts> doubts_;
  std::optional<format::VersionId> newest_;  // the last that was stored or restored
  std::optional<format::VersionId> older_;   // stays beside it
  std::uint64_t next_version_ = 1;
  bool was_killed_ = false;
  engine::Decider decider_;
  std::uint64_t contents_ = 0;  // numbers given to contents of slots
  // The tier that the user was last told of, as captures went there for want of memory.
  std::optional<config::TierKind> told_of_capture_in_;
};

// These return the directory in which the agents of a user put their sockets, and the name of the
// socket of a job there.
std::string door_directory(const config::Settings& settings);
std::string door_name(const std::string& job, const config::Settings& settings);
// Returns the settings that are configured for the user. The global path in them is absolute.
Result<config::Settings> read_settings(const std::string& config_path,
                                       const config::Environment& environment);

}  // namespace diapause::agent
