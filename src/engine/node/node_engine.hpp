// Does everything behind the capture for the ranks that one process acts for: it makes their images
// part of a version, level by level, maintains the catalogue of versions and the tiers, and writes
// the ledger. No other code orders steps.
//
// Its host (engine/host/host.hpp) calls it from one thread at a time. All calls are collective over
// the Comm of its Context.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/accounting/account.hpp"
#include "engine/accounting/governing.hpp"
#include "engine/accounting/ledger_writer.hpp"
#include "engine/accounting/step_power.hpp"
#include "engine/encoding/encoding.hpp"
#include "engine/job/context.hpp"
#include "engine/job/decision.hpp"
#include "engine/job/inventory.hpp"
#include "engine/job/starts.hpp"
#include "engine/node/captures.hpp"
#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"
#include "sys/rate_limiter.hpp"

namespace diapause::engine {

struct Outcome {
  format::Manifest manifest;  // its levels are those that were reached
  Status result;              // the error of the first level that failed
};

class NodeEngine {
 public:
  // Opens and locks the tiers, takes the inventory, and removes what never became a version.
  // `context` and `ledger` must outlive the object.
  static Result<std::unique_ptr<NodeEngine>> open(Context& context, LedgerWriter& ledger);

  std::uint32_t incarnation() const { return incarnation_; }
  // Returns the number of ranks that wrote the stored versions if it differs from the present one,
  // and 0 otherwise.
  std::uint32_t other_rank_count() const { return other_rank_count_; }
  bool has_tier(config::TierKind kind) { return context_.tiers.find(kind) != nullptr; }

  // Takes a checkpoint of the captures. `reached` is called with the levels whenever one more
  // holds.
  using Reached = std::function<void(std::uint32_t levels)>;
  Outcome checkpoint(Captures captures, const Reached& reached);
  // Puts the files back that are missing of the version Captures::completes. Its levels hold again
  // if all are.
  Outcome complete(Captures captures, const Reached& reached);

  // Reopens the tiers whose last use failed. A directory that was deleted, or a file system that is
  // back, must not need the program's help.
  void revive_tiers();
  // Lets revive_tiers() reopen that tier if its directory was removed, or another one has its name.
  // The call is collective.
  Status suspect_if_lost(config::TierKind kind);

  // Returns a slot in that tier for one capture of each size, for the ranks that this process acts
  // for. Old versions are removed to make room if necessary.
  Result<std::vector<store::Slot>> acquire(config::TierKind kind,
                                           const std::vector<std::uint64_t>& sizes);
  // Returns a slot for one capture if that is possible without other processes: the tier is in
  // order and has room. Not collective.
  std::optional<store::Slot> try_acquire(config::TierKind kind, std::uint64_t bytes);
  // Removes an old version from that tier. Returns false if none may be removed.
  Result<bool> make_room(config::TierKind kind) { return catalogue_.make_room(context_, kind); }

  // Tells the governor that a capture of so many bytes begins, for which the program waits. May be
  // called from any thread.
  governor::PhaseGuard begin_capture(std::uint64_t bytes) {
    mark();
    return governor_.begin_capture(bytes);
  }

  // Marks the beginning or end of a phase for the sampler.
  void mark() {
    if (sampler_ != nullptr) sampler_->mark();
  }
  // Adds a phase outside of checkpoint() to the energy account.
  void add(const Phase& phase) { account_.add(phase); }
  // Writes down the energy used since the last call as the last line of this start, and waits until
  // it is written. Collective.
  void end_period();

  // `asked` is called between steps, and within the writing of level 4. Once it returns true on any
  // rank, the step that writes level 4 fails, and no further step runs.
  void give_up_when(std::function<bool()> asked) {
    flush_limiter_.give_up_when(asked);
    is_given_up_ = std::move(asked);
  }

  // `first_after` returns when the first call of the program began, of those after a time, whose
  // capture checkpoint() will get: the program may be waiting since.
  void ask_for_calls(std::function<std::optional<double>(double time_s)> first_after) {
    first_call_after_ = std::move(first_after);
  }

  // Ends the job: no later start begins from its versions, and they are removed, except as
  // finish.keep says, and the directories on the nodes as finish.directories says. Only destruction
  // may follow. Collective.
  Status finish();

  void reject(const format::VersionId& version) { catalogue_.reject(version); }
  // Keeps the version that the program is being restarted from, whatever the settings say; nullopt
  // ends that.
  void pin(std::optional<format::VersionId> version) {
    catalogue_.pin(version);
    if (version) book_.note_restart(context_, *version);
    if (!version && catalogue_.has_kept_pinned()) catalogue_.prune(context_);
  }
  // Keeps one more version than the settings say, but for the need of room; nullopt ends that, and
  // what they do not keep is removed. Collective.
  void spare(std::optional<format::VersionId> version) {
    catalogue_.spare(version);
    if (!version) catalogue_.prune(context_);
  }

 private:
  NodeEngine(Context& context, LedgerWriter& ledger)
      : context_(context),
        ledger_(ledger),
        sampler_(start_sampler(context)),
        governor_(context, sampler_.get()),
        step_power_(context, sampler_.get()),
        planner_(context.settings.codec),
        encoding_(context.settings.codec.threads),
        flush_limiter_(context.topology.by_node
                           ? context.settings.async.flush_mib_s * static_cast<double>(kMiB)
                           : 0) {}

  // ---- open (tiers.cpp)
  Status open_tiers();
  Status lock_tiers();
  Status read_catalogue();
  Status clear_spares();
  void drop_leftovers(const Inventory& inventory);
  void do_without(config::TierKind kind, const Error& why);

  // ---- finish (finish.cpp)
  Result<store::FinishedMark> mark_of_end() const;
  Status leave_nodes();

  // ---- steps (node_engine.cpp)
  // The parts of the present step that the account lists as phases of their own.
  struct Parts {
    double encode_share = 0;      // the share of encoding in the time before publishing
    double published_from_s = 0;  // time at which publishing began; 0 if it did not
  };
  // A step of a checkpoint. It runs if `level` is 1 or the level asked for. Its result is agreed,
  // so that all ranks continue or none does. After a failure, steps of other levels still run if
  // `needs_images` allows it: a level that fails does not affect the others.
  struct Step {
    const char* phase;
    int level;
    bool needs_images;  // the step needs the images to be kept in the node tier
    Status (NodeEngine::*run)(Work&, const Captures&);
  };
  static const Step kSteps[];
  Work begin(const Captures& captures) const;
  Status run(Work& work, const Captures& captures, const Reached& reached);
  Status run_step(const Step& step, Work& work, const Captures& captures);
  Status move_images(Work& work, const Captures& captures);
  Status keep_images(Work& work, const Captures& captures);
  Status go_on();
  // ---- steps of a version that lacks files (complete.cpp)
  static const Step kPuttingBack[];
  Status put_back_images(Work& work, const Captures& captures);
  Status put_back_copies(Work& work, const Captures& captures);
  Status put_back_parities(Work& work, const Captures& captures);
  Status publish_again(Work& work, const Captures& captures);

  Status publish(Work& work, int level);
  Status publish_level1(Work& work, const Captures& captures);
  Status copy_level2(Work& work, const Captures& captures);
  Status encode_level3(Work& work, const Captures& captures);
  // ---- the step of level 4 (global_step.cpp)
  Status write_level4(Work& work, const Captures& captures);
  void add_outgoing(Outgoing& outgoing, RawImageSource& image);
  Result<Outgoing> outgoing_images(Work& work, const Captures& captures);
  Loss loss_allowed() const;
  Conditions conditions() const;
  void note_what_stays(const format::ImageIndex& index, const EncodingPlan& plan);
  void write_down_compression(const format::VersionId& version);
  void learn_from(GlobalStep step, const format::Manifest& manifest);

  void tell_what_a_node_holds(const Work& work);
  void give_back_slots(Work& work, const Captures& captures);
  void record(const Work& work, const Captures& captures, const Status& result);
  Status open_account();
  void end_period_behind();
  void account_for_step(const Phase& step);
  void account_for_capture(const Work& work, const Captures& captures);

  Context& context_;
  LedgerWriter& ledger_;
  std::unique_ptr<energy::Sampler> sampler_;
  Account account_;
  Catalogue catalogue_;
  StartBook book_;
  NodeGovernor governor_;
  StepPower step_power_;
  EncodingPlanner planner_;
  Encoding encoding_;
  // Regions that `auto` leaves uncompressed in the present checkpoint.
  std::vector<EncodedRegion> stay_;
  std::vector<EncodedImage> encoded_;  // images compressed in the present checkpoint
  Parts parts_;
  sys::RateLimiter flush_limiter_;     // limits background writes to the global tier
  std::function<bool()> is_given_up_;  // empty if the work is never given up
  std::function<std::optional<double>(double)> first_call_after_;  // empty: in the program's calls
  double accounted_call_s_ = 0;    // the last call whose wait is in the account began then
  bool is_cut_off_ = false;        // the ranks cannot communicate any more
  std::uint32_t told_levels_ = 0;  // bit (1 << level): of tell_what_a_node_holds()
  std::uint32_t incarnation_ = 1;
  std::uint64_t energy_lines_ = 0;         // of this start; used by the thread of the account
  bool is_next_energy_line_last_ = false;  // the same, and by end_period()
  std::uint32_t other_rank_count_ = 0;
  // Tiers whose last use failed; they are reopened before the next use.
  std::array<bool, 3> suspect_{};
};

}  // namespace diapause::engine
