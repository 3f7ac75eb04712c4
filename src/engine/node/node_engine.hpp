// Everything behind the capture, for the ranks that one process acts for: it makes their images part of a version,
// level by level, keeps the catalogue of versions and the tiers in order, and writes the ledger. The only code that
// orders steps.
//
// Whoever hosts it (engine/host/host.hpp) calls it from one thread at a time; all calls are collective over the Comm of
// its Context.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/accounting/account.hpp"
#include "engine/accounting/bill.hpp"
#include "engine/accounting/governing.hpp"
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
  format::Manifest manifest;  // its levels: those reached
  Status result;              // the first level that failed
};

class NodeEngine {
 public:
  // Opens and locks the tiers, learns what there is and removes what never became a version. `context` and `bill` must
  // outlive the object.
  static Result<std::unique_ptr<NodeEngine>> open(Context& context, Bill& bill);

  std::uint32_t incarnation() const { return incarnation_; }
  // Stored versions were written by so many ranks; 0: by as many as there are.
  std::uint32_t other_rank_count() const { return other_rank_count_; }
  bool has_tier(config::TierKind kind) { return context_.tiers.find(kind) != nullptr; }

  // `reached` is told the levels whenever one more holds.
  using Reached = std::function<void(std::uint32_t levels)>;
  Outcome checkpoint(Captures captures, const Reached& reached);

  // Opens anew the tiers whose last use failed: a directory that was deleted or a file system that came back must not
  // need the program's help.
  void revive_tiers();

  // Room for one capture of each size in that tier, for the ranks acted for; old versions make room if they must.
  Result<std::vector<store::Slot>> acquire(config::TierKind kind, const std::vector<std::uint64_t>& sizes);
  // Gives up an old version in that tier; false if there is none that may go.
  Result<bool> make_room(config::TierKind kind) { return catalogue_.make_room(context_, kind); }

  // Tells the governor that a capture of so many bytes begins now, for which the program waits. From any thread.
  governor::PhaseGuard begin_capture(std::uint64_t bytes) {
    mark();
    return governor_.begin_capture(bytes);
  }

  // Adds a phase that is not part of a checkpoint() to the account of energy.
  void add(const Phase& phase) { account_.add(phase); }
  // Writes down who has used how much energy since the last time, and waits until that is there. Collective.
  void settle();

  // Asked between steps: once anybody says true, no further step is taken.
  void give_up_when(std::function<bool()> asked) { is_given_up_ = std::move(asked); }

  // The program is done with its job: from now on no start begins from what there is, and it goes, but for what
  // finish.keep says. Only destruction may follow. Collective.
  Status finish();

  void reject(const format::VersionId& version) { catalogue_.reject(version); }
  // Keeps the version that the program is being restarted from, whatever the settings say; none ends that.
  void pin(std::optional<format::VersionId> version) {
    catalogue_.pin(version);
    if (version) book_.note_restart(context_, *version);
  }

 private:
  NodeEngine(Context& context, Bill& bill)
      : context_(context),
        bill_(bill),
        sampler_(start_sampler(context)),
        governor_(context, sampler_.get()),
        step_power_(context, sampler_.get()),
        planner_(context.settings.codec),
        encoding_(context.settings.codec.threads),
        flush_limiter_(context.topology.by_node ? context.settings.async.flush_mib_s * static_cast<double>(kMiB) : 0) {}

  // ---- open (tiers.cpp)
  Status open_tiers();
  Status lock_tiers();
  Status read_catalogue();
  Status clear_spares();
  void drop_leftovers(const Inventory& inventory);
  void do_without(config::TierKind kind, const Error& why);

  // ---- finish (finish.cpp)
  Result<store::FinishedMark> mark_of_end() const;

  // ---- steps (node_engine.cpp)
  // A phase begins or ends.
  void mark() {
    if (sampler_ != nullptr) sampler_->mark();
  }
  // The parts of the step under way that the account lists as phases of their own.
  struct Parts {
    double encode_share = 0;      // of the time until then
    double published_from_s = 0;  // until its end; 0: it was not
  };
  struct Step;
  static const Step kSteps[];
  Work begin(const Captures& captures) const;
  Status run(Work& work, const Captures& captures, const Reached& reached);
  Status run_step(const Step& step, Work& work, const Captures& captures);
  Status move_images(Work& work, const Captures& captures);
  Status keep_images(Work& work, const Captures& captures);
  Status go_on();
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

  void record(const Work& work, const Captures& captures, const Status& result);
  Status open_account();
  void settle_behind();
  void account_for_step(const Phase& step);
  void account_for_capture(const Work& work, const Captures& captures);

  Context& context_;
  Bill& bill_;
  std::unique_ptr<energy::Sampler> sampler_;
  Account account_;
  Catalogue catalogue_;
  StartBook book_;
  NodeGovernor governor_;
  StepPower step_power_;
  EncodingPlanner planner_;
  Encoding encoding_;
  std::vector<EncodedRegion> stay_;    // regions that `auto` leaves as they are, in the checkpoint under way
  std::vector<EncodedImage> encoded_;  // in the checkpoint under way
  Parts parts_;
  sys::RateLimiter flush_limiter_;     // of what goes to the global tier in the background
  std::function<bool()> is_given_up_;  // empty: never
  bool is_cut_off_ = false;            // the ranks cannot communicate any more
  std::uint32_t incarnation_ = 1;
  std::uint32_t other_rank_count_ = 0;
  std::array<bool, 3> suspect_{};  // tiers whose last use failed: reopened before the next
};

}  // namespace diapause::engine
