// One instance, as a rank of the program sees it: what is protected, when a checkpoint is due, the
// capture, the restart. The node engine (engine/node/node_engine.hpp) does everything behind the
// capture, wherever it runs (engine/host/host.hpp). docs/life-of-a-checkpoint.md and
// docs/life-of-a-restart.md walk through it.
//
// All state of an instance is in its object. Collective calls run in the calling thread. Calls must
// not overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/host/dedicated_rank.hpp"
#include "engine/host/host.hpp"
#include "engine/job/context.hpp"
#include "engine/restart/fetch.hpp"
#include "library/again.hpp"
#include "library/deadline.hpp"
#include "library/files.hpp"
#include "library/flip_injector.hpp"
#include "library/image_capture.hpp"
#include "library/invariants.hpp"
#include "library/pacemaker.hpp"
#include "library/region_table.hpp"
#include "library/restart_session.hpp"
#include "library/versions_in_flight.hpp"
#include "policy/schedule.hpp"

namespace diapause::library {

struct CheckpointInfo {
  bool taken = false;
  bool skipped = false;  // due, and not taken: too many versions were in flight
  std::uint64_t version = 0;
  int level_asked = 0;
  int level_reached = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_total = 0;
  double blocked_s = 0;
  double waited_s = 0;  // the part of it that was spent waiting for versions in flight
  // The error of an earlier version whose work in the background has failed since the last call; 0
  // if there is none.
  Code background = Code{};
  std::uint64_t background_version = 0;
};

// The progress of a version.
struct VersionProgress {
  std::uint64_t version = 0;
  int level_asked = 0;
  int level_reached = 0;
  bool in_flight = false;
  // The program may write to regions it declared stable, and free what it protected.
  bool captured = false;
};

struct RestartInfo {
  std::uint64_t version = 0;
  int level = 0;
  bool stepped_back = false;
  std::uint64_t bytes = 0;
  double greatest_error = 0;  // greatest error of any value on any rank; 0 if all are exact
  bool redundancy_lost = false;
};

// Everything an engine gets from outside.
struct OpenRequest {
  std::unique_ptr<comm::Comm> comm;
  sys::Kernel* kernel = nullptr;
  std::string name;
  std::string config_path;  // empty if there is none
  std::string config_text;  // TOML, used if there is no path
  config::Environment environment;
  std::string host_name;
  Result<std::string> working_directory = std::string();  // must be known for a relative path
  std::uint32_t user_id = 0;
  LogSink log;
  std::unique_ptr<sys::StopSignals> stop_signals;  // nullptr: signals are not watched
};

struct Opened;

class Engine {
 public:
  static constexpr std::uint64_t kNewest = engine::Decider::kNewest;

  // Opens an instance. Collective.
  static Result<Opened> open(OpenRequest request);
  ~Engine();

  Status protect(ProtectedRegion region);
  Status unprotect(const std::string& name);
  // Declares how the program will write to the region, until it is protected anew.
  Status declare(const std::string& name, capture::Declaration declaration);

  // Allows a codec to change the region's values on the way to the global tier
  // (library/invariants.hpp), until the region is protected anew.
  Status allow_loss(const std::string& name, const codec::Method& method) {
    return library::allow_loss(regions_, name, method);
  }
  // Asked, before anything else of a version of level 4 is done, of the values that would come
  // back; if not, the regions named are stored without loss in that version.
  Status keep_invariant(Invariant invariant) {
    return invariants_.add(regions_, std::move(invariant));
  }
  // Called at the end of each restore() that succeeded, before the program goes on.
  void on_restore(std::function<Status()> hook) { on_restore_ = std::move(hook); }

  // Fills `info` also on failure.
  Status checkpoint(std::uint64_t version, int level, CheckpointInfo& info);
  // Begins a checkpoint in steps: decides on the version and waits for room. Unless `info` says
  // that it is skipped, a checkpoint is then open, and all ranks end it by one of the two calls
  // below. While one is open, calls that begin another one or a restart fail with Code::argument.
  // Collective.
  Status begin_checkpoint(std::uint64_t version, int level, CheckpointInfo& info);
  // A region that only this version holds. Its memory must stay, unchanged, until the end of the
  // checkpoint.
  Status add_to_checkpoint(ProtectedRegion region);
  // Captures what is protected and what was added. Fails on all ranks if one of them gives up.
  Status commit_checkpoint(CheckpointInfo& info);
  Status give_up_checkpoint(const std::string& why);
  Status snapshot(std::uint64_t version, CheckpointInfo& info);
  // Returns whether the next snapshot will take a checkpoint. It decides for that call, which then
  // decides no more. It is collective as snapshot() is, and costs no further communication.
  Result<bool> is_due();
  // Returns whether the job has enough nodes for this level, 1 to 4. Not collective.
  Result<bool> has_nodes_for(int level) const;
  // Called by each checkpoint that is taken, in its thread, before it reads memory; may protect and
  // unprotect.
  void on_capture(std::function<Status()> hook) { on_capture_ = std::move(hook); }
  // The reason why the program has to stop, as of the last snapshot.
  std::optional<Stop> should_stop() { return deadline_.ask(*context_); }

  // Returns an empty directory of this rank, for files of the next version. Collective.
  Result<std::string> begin_files();
  // Takes a checkpoint of the protected regions and of the files in that directory, which is
  // removed if it succeeds. `is_valid` says that the files are complete. If they are not on all
  // ranks, there is no version, and the result is Code::argument. Collective.
  Status checkpoint_files(std::uint64_t version, int level, bool is_valid, CheckpointInfo& info);
  // Returns a directory of this rank with the files of the version that a restart has opened. It
  // exists until restart_end(). Collective.
  Result<std::string> restore_files();

  // Waits until `version` holds at `level` or deeper; with level 0, until it is captured. If that
  // has failed, it returns the error that was the reason. It returns Code::timeout if the time is
  // over, and Code::not_found for a version that this instance has not taken lately. Not
  // collective.
  Status wait(std::uint64_t version, int level, double at_most_s);
  Result<VersionProgress> poll(std::uint64_t version);
  // Waits until nothing is in flight; what is not done when the time is over is given up. Returns
  // the first failure that was not reported yet. Nothing but destruction may follow. Collective.
  Status close(double at_most_s);
  // Ends the job: closes the instance as close() does, and what finish.keep does not keep is
  // removed, and the next start of the program begins anew. If that fails, the error says what is
  // left. Collective; nothing but destruction may follow.
  Status finish();
  engine::Worker worker() const { return host_->worker(); }
  const std::string& background_reason() const { return background_reason_; }

  // Restores all protected regions from that version and ends the restart. Everything is read once,
  // straight to its place, and checked there: if a version turns out to be damaged on the way, and
  // no other copy is intact, the next older one is taken. After Code::corrupt the regions hold
  // nothing that can be used; after Code::mismatch they are as they were.
  Status restart(std::uint64_t version, RestartInfo& info);
  // Returns the newest version whose number is at most this one, by the manifests alone. The result
  // is Code::not_found if there is none.
  Result<std::uint64_t> newest(std::uint64_t at_most);
  // In steps: all is checked before restart_begin() returns, and then read again by restore().
  Status restart_begin(std::uint64_t version, RestartInfo& info,
                       engine::Purpose purpose = engine::Purpose::copy);
  Status restore(const std::vector<std::string>& names);
  Status restart_end();
  // Gives a stored region as memory that lives until unmap() or the end of this object. Not
  // collective.
  Result<std::byte*> map(const std::string& region);
  Status unmap(std::byte* data) { return session_->unmap(data); }
  // Waits until all that a restart left to be checked is checked, and returns whether it is sound.
  // The answer is the same on all ranks, also when asked again. Collective.
  Status scrub_wait() { return session_->wait_for_scrub(); }
  const format::ImageIndex* stored() const {
    return session_->is_open() ? &session_->get().image().index() : nullptr;
  }
  // Returns a stored region of the open restart; null if there is none of that name.
  const format::Region* find_stored(const std::string& region) {
    const auto place = session_->find_stored(region);
    return place ? &stored()->regions[*place] : nullptr;
  }
  const std::string& restart_reason() const { return session_->reason(); }

  Status inject_bit_flip(const std::string& region, std::uint64_t element, std::uint32_t bit) {
    return flip_bit(regions_, region, element, bit);
  }
  void set_log(LogSink log) { context_->log = std::move(log); }

 private:
  explicit Engine(std::unique_ptr<engine::Context> context);

  // ---- open (open.cpp)
  static Result<Opened> open_instance(OpenRequest& request);
  static Result<Opened> open_beside_dedicated(std::unique_ptr<engine::Context> whole,
                                              OpenRequest& request);
  Status start(std::unique_ptr<engine::Host> host, OpenRequest& request);
  Status watch_deadline(OpenRequest& request);
  void write_open_record();

  // A checkpoint between its begin and its end.
  struct OpenCheckpoint {
    engine::Decision decision;
    CheckpointInfo info;
    double begin_s = 0;              // seconds that the beginning took
    std::vector<std::string> added;  // regions that go with it
    std::vector<format::Region> files = {};
  };

  // ---- checkpoint (checkpoint.cpp)
  Status usable() const;
  // Returns the status, and turns the instance off if it says that the ranks cannot communicate any
  // more.
  Status turn_off_if_cut_off(Status result);
  Status none_is_open() const;
  Status end_checkpoint(Status ready, CheckpointInfo& info);
  Status capture(Status ready, const OpenCheckpoint& open, double called_s, CheckpointInfo& info);
  // Says when the capture follows the decision. Between the two, the program may change what there
  // is to capture.
  enum class CaptureFollows { at_once, later };
  Status begin_checkpoint(CaptureFollows follows, CheckpointInfo& info);
  Result<engine::Decision> begin(CaptureFollows follows, CheckpointInfo& info);
  bool prepare_capture(const CheckpointInfo& info);
  Status checkpoint_from(Subject subject, const engine::Decision& decision, CheckpointInfo& info);
  void catch_up();
  void finish_flights();
  void report_background(CheckpointInfo& info);
  bool make_room_in_flight(std::uint64_t next_bytes, CheckpointInfo& info);
  bool is_captured(const Flight& flight) const;
  void keep_slot_ready();

  // ---- snapshot (snapshot.cpp)
  Result<int> decide_level();
  Result<double> agree_on_time();
  int deepest_possible(int level);
  void tell_of_too_few_nodes();

  // ---- lost redundancy (heal.cpp)
  void heal();
  Status take_again();
  Status put_back(config::TierKind tier);

  std::unique_ptr<engine::Context> context_;
  engine::LedgerWriter ledger_;
  std::unique_ptr<engine::Host> host_;
  policy::Schedule schedule_;
  std::unique_ptr<Pacemaker> pacemaker_;  // null except on rank 0 with schedule = "auto"
  Deadline deadline_;
  AgainNote again_note_;
  RegionTable regions_;
  Files files_{*context_};
  Invariants invariants_;
  FlipInjector flips_;
  std::function<Status()> on_restore_;  // empty: nobody wants to know
  std::function<Status()> on_capture_;  // the same, for captures
  // What is_due() has decided for the next snapshot; 0 if none is due.
  std::optional<int> decided_level_;
  std::uint32_t lossy_restarts_ = 0;  // format::Manifest, of what is computed now
  std::string background_reason_;
  std::optional<OpenCheckpoint> open_;
  engine::Decider decider_;
  std::optional<Error> off_;  // the reason why the instance turned itself off
  bool told_too_few_nodes_ = false;
  // It is also true if a slot was asked for since regions or versions in flight have changed.
  bool is_slot_ready_ = false;
  static constexpr double kPeriod_s = 1;  // the least length of a period of the energy account
  double period_from_s_ = 0;              // time at which the present period began, on rank 0
  double opened_s_ = 0;

  // All three are there once the instance has started. The capture is destroyed first because it
  // may still be handing over.
  std::unique_ptr<RestartSession> session_;
  std::unique_ptr<VersionsInFlight> flights_;
  std::unique_ptr<ImageCapture> capture_;
};

// The two things that a rank can become when it opens an instance: a rank that computes, or the
// dedicated one of its node.
struct Opened {
  std::unique_ptr<Engine> engine;  // null on a dedicated rank
  std::unique_ptr<engine::DedicatedRank> dedicated;
};

}  // namespace diapause::library
