// One instance, as a rank of the program sees it: what is protected, when a checkpoint is due, the capture, the
// restart. What comes behind the capture is the node engine's (engine/node_engine.hpp), wherever it runs
// (engine/host.hpp). docs/life-of-a-checkpoint.md and docs/life-of-a-restart.md walk through it.
//
// All state of an instance is in its object. Collective calls run in the calling thread. Calls must not overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/capturer.hpp"
#include "codec/codec.hpp"
#include "engine/context.hpp"
#include "engine/deadline.hpp"
#include "engine/dedicated_rank.hpp"
#include "engine/drain.hpp"
#include "engine/host.hpp"
#include "engine/restart.hpp"
#include "engine/scrub.hpp"
#include "policy/schedule.hpp"

namespace diapause::engine {

struct ProtectedRegion {
  format::Region description;  // name, type, element size, count, place
  std::byte* data = nullptr;
  capture::Declaration declaration = capture::Declaration::changing;
};

struct CheckpointInfo {
  bool taken = false;
  bool skipped = false;  // due, and not taken: too many versions were in flight
  std::uint64_t version = 0;
  int level_asked = 0;
  int level_reached = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_total = 0;
  double blocked_s = 0;
  double waited_s = 0;       // of it, for versions in flight to make room
  Code background = Code{};  // 0: none. An earlier version's work in the background failed since the last call
  std::uint64_t background_version = 0;
};

// How far a version has come.
struct VersionProgress {
  std::uint64_t version = 0;
  int level_asked = 0;
  int level_reached = 0;
  bool in_flight = false;
  bool captured = false;  // the program may write to regions it declared stable, and free what it protected
};

struct RestartInfo {
  std::uint64_t version = 0;
  int level = 0;
  bool stepped_back = false;
  std::uint64_t bytes = 0;
  double greatest_error = 0;  // of any value, on any rank; 0: exact
};

// What must hold of values that were changed by a codec.
struct Invariant {
  std::vector<std::string> regions;  // for which loss is allowed
  // Gets the values of the regions in their order.
  std::function<bool(std::span<const ByteView>)> holds;
};

// Everything an engine gets from outside.
struct OpenRequest {
  std::unique_ptr<comm::Comm> comm;
  sys::Kernel* kernel = nullptr;
  std::string name;
  std::string config_path;  // empty: none
  std::string config_text;  // TOML, used if there is no path
  config::Environment environment;
  std::string host_name;
  std::string working_directory;
  std::uint32_t user_id = 0;
  LogSink log;
  std::unique_ptr<sys::StopSignals> stop_signals;  // nullptr: signals are not watched
};

struct Opened;

class Engine {
 public:
  static constexpr std::uint64_t kNewest = UINT64_MAX;

  // Collective.
  static Result<Opened> open(OpenRequest request);
  ~Engine();

  Status protect(ProtectedRegion region);
  Status unprotect(const std::string& name);
  // Until the region is protected anew.
  Status declare(const std::string& name, capture::Declaration declaration);

  // Until the region is protected anew: lets its values be changed on the way to the global tier, by at most the bound
  // of the method. Code::argument for bounds and types that no codec takes; Code::config for a codec that this build
  // does not have.
  Status allow_loss(const std::string& name, const codec::Method& method);
  // Asked, before anything else of a version of level 4 is done, of the values that would come back; if not, the
  // regions named are stored without loss in that version.
  Status keep_invariant(Invariant invariant);
  // Called at the end of each restore() that succeeded, before the program goes on.
  void on_restore(std::function<Status()> hook) { on_restore_ = std::move(hook); }

  // Fills `info` also on failure.
  Status checkpoint(std::uint64_t version, int level, CheckpointInfo& info);
  Status snapshot(std::uint64_t version, CheckpointInfo& info);
  // Why the program has to stop, as of the last snapshot.
  std::optional<Stop> should_stop() { return deadline_.ask(*context_); }

  // Until `version` holds at `level` or deeper; level 0: until it is captured. The error that kept it from doing so;
  // Code::timeout; Code::not_found for a version that this instance has not taken lately. Not collective.
  Status wait(std::uint64_t version, int level, double at_most_s);
  Result<VersionProgress> poll(std::uint64_t version);
  // Until nothing is in flight; what is not done when the time is over is given up. Returns the first failure that was
  // not reported yet. Collective; nothing but destruction may follow.
  Status close(double at_most_s);
  Worker worker() const { return host_->worker(); }
  const std::string& background_reason() const { return background_reason_; }

  Status restart_begin(std::uint64_t version, RestartInfo& info, Purpose purpose = Purpose::copy);
  Status restore(const std::vector<std::string>& names);
  Status restart_end();
  // A stored region as memory that lives until unmap() or this object's end. Not collective.
  Result<std::byte*> map(const std::string& region);
  Status unmap(std::byte* data);
  // Whether all that a restart left to be checked is sound; waits for it. The same on all ranks, also when asked again.
  // Collective.
  Status scrub_wait();
  const format::ImageIndex* stored() const { return restart_ ? &restart_->image().index() : nullptr; }
  const std::string& restart_reason() const { return restart_reason_; }

  Status inject_bit_flip(const std::string& region, std::uint64_t element, std::uint32_t bit);
  void set_log(LogSink log) { context_->log = std::move(log); }

 private:
  explicit Engine(std::unique_ptr<Context> context);

  // ---- open (open.cpp)
  static Result<Opened> open_beside_dedicated(std::unique_ptr<Context> whole, OpenRequest& request);
  Status start(std::unique_ptr<Host> host, OpenRequest& request);
  Status watch_deadline(OpenRequest& request);
  Status make_capturer();
  void write_open_record();
  Result<ProtectedRegion*> protected_region(const std::string& name);

  // ---- checkpoint (checkpoint.cpp)
  Status usable() const;
  Result<Decision> begin(std::uint64_t version, int level, std::uint64_t next_bytes, CheckpointInfo& info);
  struct Subject {  // of a checkpoint
    capture::BlockSource& source;
    format::ImageIndex index;
    std::vector<capture::SourceRegion> memory;  // what `source` reads, if that is memory of the program
    double called_s = sys::monotonic_s();       // when the program began to wait
  };
  Status checkpoint_from(Subject subject, const Decision& decision, CheckpointInfo& info);
  struct Plan {  // of an image
    format::ImageIndex index;
    std::uint64_t index_offset = 0;
    format::ImageHeader identity;
  };
  Result<store::Slot> acquire_slot(Captures& captures, std::uint64_t bytes);
  Status begin_capture(const Subject& subject, const Plan& plan, store::Slot slot, Captures& captures);
  Status end_capture(Captures& captures);
  void capture_now(const Subject& subject, const Plan& plan, store::Slot slot, Captures& captures);
  bool goes_on_behind() const { return host_->is_background() && capturer_->has_bytes_left(); }
  static Status stream(capture::BlockSource& source, const Plan& plan, store::Slot slot, Captures& captures);
  std::uint64_t hand_over(Captures captures);
  void bill_capture();
  Result<GlobalFacts> write_direct(capture::BlockSource& source, const Plan& plan, const GlobalTarget& to);
  static Result<ImageInPlace> take_in_place(capture::BlockSource& source, const Plan& plan);

  // ---- loss (loss.cpp)
  Status apply_invariants(format::ImageIndex& index);
  Result<bool> holds(const Invariant& invariant);

  // ---- background (background.cpp)
  struct InFlight {
    std::uint64_t job = 0;
    std::uint64_t version = 0;
    int level = 0;
    std::uint64_t bytes = 0;  // of this rank's image
    Progress progress;
  };
  void catch_up();
  void finish_flights();
  void report_background(CheckpointInfo& info);
  bool is_full(std::uint64_t next_bytes) const;
  bool make_room_in_flight(std::uint64_t next_bytes, CheckpointInfo& info);
  const InFlight* find_taken(std::uint64_t version) const;
  // Captures end in the order that they begin in.
  bool is_captured(const InFlight& one) const { return &one != &taken_.back() || drain_.is_done(); }

  // ---- snapshot (snapshot.cpp)
  void inject_due_flips();
  int deepest_possible(int level);
  std::uint64_t protected_bytes() const;

  // ---- restart (restart.cpp)
  Status heal();

  // ---- mapped restart (mapped.cpp)
  void begin_scrub(Purpose purpose);

  std::unique_ptr<Context> context_;
  Bill bill_;
  std::unique_ptr<Host> host_;
  policy::Schedule schedule_;
  Deadline deadline_;
  std::vector<ProtectedRegion> regions_;
  std::vector<Invariant> invariants_;
  std::function<Status()> on_restore_;  // empty: nobody wants to know
  std::uint32_t lossy_restarts_ = 0;    // format::Manifest, of what is computed now
  std::deque<InFlight> taken_;          // the last checkpoints, oldest first
  std::optional<InFlight> failed_;      // in the background, not reported yet
  std::string background_reason_;
  bool suspect_ = false;  // a version was not kept: the tier may be gone
  std::optional<Restart> restart_;
  std::string restart_reason_;
  std::map<std::byte*, sys::PrivateMemory> mapped_;
  std::unique_ptr<Scrub> scrub_;      // of this rank's image, if it was left to be checked
  bool is_scrubbed_ = true;           // and all ranks know the result
  std::optional<Error> scrub_found_;  // until another restart succeeds
  std::uint32_t attempts_ = 0;        // rank 0: checkpoints tried by this instance
  std::optional<Error> off_;          // why the instance turned itself off
  bool told_too_few_nodes_ = false;
  static constexpr double kSettleEvery_s = 1;
  double settled_s_ = 0;  // rank 0: when the account of energy was settled last
  double opened_s_ = 0;
  double last_flip_s_ = 0;
  std::uint64_t flips_done_ = 0;
  std::uint64_t flip_random_ = 0;

  std::optional<config::TierKind> told_of_capture_in_;  // another tier than the best
  std::unique_ptr<capture::Capturer> capturer_;
  bool are_devices_about_ = false;             // that write to memory past the processor
  std::uint64_t slot_contents_ = 0;            // numbers given to slots
  std::optional<format::VersionId> unbilled_;  // version whose capture is not in the ledger yet
  Drain drain_;                                // of the capture that is open; whatever posts to the host waits for it
};

// What a rank becomes when it opens an instance: one that computes, or the one of its node that is set aside.
struct Opened {
  std::unique_ptr<Engine> engine;  // null on a rank set aside
  std::unique_ptr<DedicatedRank> dedicated;
};

}  // namespace diapause::engine
