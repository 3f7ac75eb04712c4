// Everything behind the capture, for the ranks that one process acts for: it makes their images part of a version,
// level by level, keeps the catalogue of versions and the tiers in order, and writes the ledger. The only code that
// orders steps.
//
// Whoever hosts it (engine/host.hpp) calls it from one thread at a time; all calls are collective over the Comm of its
// Context.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "energy/ledger.hpp"
#include "engine/account.hpp"
#include "engine/catalogue.hpp"
#include "engine/context.hpp"
#include "engine/encoding.hpp"
#include "engine/governing.hpp"
#include "engine/step_power.hpp"
#include "engine/work.hpp"
#include "sys/pacer.hpp"

namespace diapause::engine {

// The ledger of a job, for whichever threads of rank 0 write to it. A line that cannot be written is lost; the first of
// several in a row is logged.
class Bill {
 public:
  void open(Context& context);
  void append(Context& context, const std::string& json_object);
  // The same for threads that may not log: that is left to the next append().
  void append_quietly(const std::string& json_object);
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return ledger_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<energy::Ledger> ledger_;
  bool is_losing_lines_ = false;
  std::optional<std::string> untold_;  // why the last line was lost
};

// What all ranks agreed on before a capture.
struct Decision {
  std::uint64_t number = 0;
  std::uint64_t created_unix_ns = 0;
  std::int32_t level = 0;
  std::array<std::uint8_t, 16> commit{};
  std::uint8_t ok = 0;
  std::uint8_t skip = 0;             // too many versions are in flight
  std::uint8_t settle = 0;           // the account of energy, afterwards
  std::uint8_t suspect = 0;          // an earlier version was not kept: the tier may be gone
  std::uint32_t lossy_restarts = 0;  // format::Manifest
};

// When the program was held up by a capture, sys::monotonic_s(); of one rank for its node.
struct CaptureTimes {
  double called_s = 0;
  double begun_s = 0;    // until then it has waited for others and for room
  double blocked_s = 0;  // from then on
  double drain_begun_s = 0;
  double drain_s = 0;  // of what was captured behind the call
  governor::Ratios ratios;
};

// What was captured of one version, by the ranks acted for.
struct Captures {
  Decision decision;
  config::TierKind node_tier = config::TierKind::memory;     // where the images are to be kept
  config::TierKind capture_tier = config::TierKind::memory;  // where they lie now
  std::vector<Image> images;                                 // by rank; not to be used if the capture failed here
  Status result;                                             // why
  // Level 4 without images in the node tier: written straight from where the data are. Empty: not possible.
  std::vector<OutgoingImage> direct;
  bool is_direct = false;  // this is what is wanted
  double capture_s = 0;
  CaptureTimes times;                 // blocked_s: 0 in the call
  std::function<double()> blocked_s;  // for the bill, asked at the end
};

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
  // Whether an old version could be given up in that tier.
  Result<bool> make_room(config::TierKind kind) { return catalogue_.make_room(context_, kind); }

  // Of a capture of so many bytes, which begins now and which the program waits for. From any thread.
  governor::PhaseGuard begin_capture(std::uint64_t bytes) {
    mark();
    return governor_.begin_capture(bytes);
  }

  // What is not part of a checkpoint() and took time.
  void add(const Phase& phase) { account_.add(phase); }
  // Writes down who has used how much energy since the last time, and waits until that is there. Collective.
  void settle();

  // Asked between steps: once anybody says true, no further step is taken.
  void give_up_when(std::function<bool()> asked) { is_given_up_ = std::move(asked); }

  void reject(const format::VersionId& version) { catalogue_.reject(version); }
  void pin(std::optional<format::VersionId> version) { catalogue_.pin(version); }

 private:
  NodeEngine(Context& context, Bill& bill)
      : context_(context),
        bill_(bill),
        sampler_(start_sampler(context)),
        governor_(context, sampler_.get()),
        step_power_(context, sampler_.get()),
        planner_(context.settings.codec),
        encoding_(context.settings.codec.threads),
        flush_pacer_(context.topology.by_node ? context.settings.async.flush_mib_s * static_cast<double>(kMiB) : 0) {}

  // ---- open (tiers.cpp)
  Status open_tiers();
  Status lock_tiers();
  Status read_catalogue();
  Status clear_spares();
  void do_without(config::TierKind kind, const Error& why);

  // ---- steps (node_engine.cpp)
  // A phase begins or ends.
  void mark() {
    if (sampler_ != nullptr) sampler_->mark();
  }
  // What of the step under way is another phase.
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
  OutgoingImage as_it_is(Image& image);
  Outgoing kept_images(Work& work);
  Outgoing direct_images(const Captures& captures);
  Result<Outgoing> outgoing_images(Work& work, const Captures& captures);
  Result<GlobalFacts> write_encoded(const ImageFacts& facts, ByteSource& bytes, const EncodingPlan& plan,
                                    const GlobalTarget& to);
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
  NodeGovernor governor_;
  StepPower step_power_;
  EncodingPlanner planner_;
  Encoding encoding_;
  std::vector<EncodedRegion> stay_;    // regions that `auto` leaves as they are, in the checkpoint under way
  std::vector<EncodedImage> encoded_;  // in the checkpoint under way
  Parts parts_;
  sys::Pacer flush_pacer_;             // of what goes to the global tier in the background
  std::function<bool()> is_given_up_;  // empty: never
  bool is_cut_off_ = false;            // the ranks cannot communicate any more
  std::uint32_t incarnation_ = 1;
  std::uint32_t other_rank_count_ = 0;
  std::array<bool, 3> suspect_{};  // tiers whose last use failed: reopened before the next
};

// One tier, opened on all ranks or on none; whoever acts for it makes what is missing. Collective.
Status open_tier(Context& context, config::TierKind kind);

}  // namespace diapause::engine
