#include "engine/node/node_engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fixed_text.hpp"
#include "engine/accounting/ledger_lines.hpp"
#include "engine/node/levels/parity.hpp"
#include "engine/node/levels/partner.hpp"
#include "engine/node/publish.hpp"
#include "redundancy/places.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

namespace diapause::engine {

const NodeEngine::Step NodeEngine::kSteps[] = {
    {"keep", 1, false, &NodeEngine::keep_images},
    {"publish", 1, true, &NodeEngine::publish_level1},
    {"partner", 2, true, &NodeEngine::copy_level2},
    {"parity", 3, true, &NodeEngine::encode_level3},
    {"global", 4, false, &NodeEngine::write_level4},
};

Work NodeEngine::begin(const Captures& captures) const {
  const Decision& decision = captures.decision;
  Work work;
  work.level = decision.level;
  work.node_tier = captures.node_tier;
  const format::VersionId version{incarnation_, decision.number, {decision.commit}};
  work.manifest = make_manifest(context_, version, decision.created_unix_ns);
  work.manifest.lossy_restarts = decision.lossy_restarts;
  return work;
}

// Copies images that were captured elsewhere into the node tier and keeps the copies. Collective.
Status NodeEngine::move_images(Work& work, const Captures& captures) {
  DIAPAUSE_TRY(agree(context_, captures.result));
  std::vector<std::uint64_t> sizes;
  for (const Image& image : work.images) sizes.push_back(image.bytes->size());
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                      catalogue_.acquire(context_, work.node_tier, sizes));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    DIAPAUSE_TRY(capture::write_bytes(*work.images[i].bytes, slots[i].file()));
    DIAPAUSE_TRY(keep(context_, catalogue_, work, std::move(slots[i]),
                      store::image_name(work.images[i].facts.rank)));
  }
  return {};
}

Status NodeEngine::keep_images(Work& work, const Captures& captures) {
  const auto keep_all = [&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(work.node_tier));
    // Also by a rank that has no image: all ranks of a node begin with the same directory.
    DIAPAUSE_TRY(tier->begin_version(work.manifest.version));
    DIAPAUSE_TRY(captures.result);
    if (captures.capture_tier != work.node_tier) return {};
    for (Image& image : work.images) {
      DIAPAUSE_TRY(keep(context_, catalogue_, work, std::move(image.slot),
                        store::image_name(image.facts.rank)));
    }
    return {};
  };
  Status mine = keep_all();
  if (captures.capture_tier != work.node_tier) {
    const Status moved = move_images(work, captures);
    if (mine) mine = moved;
  }
  std::vector<ImageFacts> facts;
  for (const Image& image : work.images) facts.push_back(image.facts);
  Status kept = share_images(context_, work.manifest, mine, facts);
  work.is_kept = kept.has_value();
  if (!kept) catalogue_.discard(context_, work.manifest.version, work.node_tier);
  return kept;
}

Status NodeEngine::publish_level1(Work& work, const Captures&) {
  return publish_on_nodes(context_, catalogue_, work, 1);
}

// Publishes at the end of another step.
Status NodeEngine::publish(Work& work, int level) {
  if (parts_.published_from_s == 0) parts_.published_from_s = sys::monotonic_s();
  return publish_on_nodes(context_, catalogue_, work, level);
}

Status NodeEngine::copy_level2(Work& work, const Captures&) {
  DIAPAUSE_TRY(copy_to_partners(context_, catalogue_, work));
  return publish(work, 2);
}

Status NodeEngine::encode_level3(Work& work, const Captures&) {
  DIAPAUSE_TRY(encode_parity(context_, catalogue_, work));
  return publish(work, 3);
}

// Accounts for the capture: what the program waited for, and what was copied in the background.
// Called after the first step, when all ranks know how many bytes the version has.
void NodeEngine::account_for_capture(const Work& work, const Captures& captures) {
  const CaptureTimes& times = captures.times;
  const double blocked_s = times.blocked_s > 0 ? times.blocked_s : captures.capture_s;
  Phase wait = make_phase("wait", times.called_s, times.begun_s);
  wait.beside = energy::Beside::waiting;
  Phase capture = make_phase("capture", times.begun_s, times.begun_s + blocked_s);
  capture.ratios = times.ratios;
  Phase drain = make_phase("drain", times.drain_begun_s, times.drain_begun_s + times.drain_s);
  drain.beside = energy::Beside::program;
  std::vector<Phase> phases = captures.before;
  phases.insert(phases.end(), {wait, capture, drain});
  for (Phase& phase : phases) {
    if (!(phase.to_s > phase.from_s)) continue;
    phase.version = captures.decision.number;
    phase.bytes = work.manifest.protected_bytes();
    account_.add(phase);
  }
  accounted_call_s_ = times.called_s;
}

// Accounts for a step. A step that publishes or compresses consists of several phases.
void NodeEngine::account_for_step(const Phase& step) {
  Phase rest = step;
  Phase published = step;
  put_text(published.name, "publish");
  if (parts_.published_from_s > 0) rest.to_s = published.from_s = parts_.published_from_s;
  if (parts_.encode_share > 0) {
    Phase encoded = rest;
    put_text(encoded.name, "encode");
    encoded.share = parts_.encode_share;
    rest.share = 1 - encoded.share;
    account_.add(encoded);
  }
  account_.add(rest);
  if (parts_.published_from_s > 0) account_.add(published);
}

// Returns whether to continue. All ranks agree on it, because a rank that stopped alone would leave
// the others waiting.
Status NodeEngine::go_on() {
  if (!is_given_up_) return {};
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t given_up, context_.comm->all_max(is_given_up_() ? 1 : 0));
  if (given_up == 0) return {};
  return fail(Code::off, "given up when the program closed the instance");
}

Status NodeEngine::run_step(const Step& step, Work& work, const Captures& captures) {
  std::uint64_t bytes = 0;
  for (const Image& image : work.images) bytes += image.bytes->size();
  if (work.images.empty()) {
    for (const auto& image : captures.direct) bytes += image->bytes();
  }
  Phase phase = make_phase(step.phase, sys::monotonic_s(), 0);
  parts_ = {};
  Status done;
  {
    // Compression happens while the file is written. This version is taken to be compressed if the
    // last one was.
    const bool compresses = step.level == 4 && !encoded_.empty();
    const auto kind = compresses ? policy::PhaseKind::compress : policy::PhaseKind::write;
    governor::PhaseGuard governed = governor_.begin_phase(step.phase, kind, bytes);
    done = (this->*step.run)(work, captures);
    if (done) governed.succeeded();
    phase.ratios = governed.ratios();
  }
  phase.to_s = sys::monotonic_s();
  mark();
  phase.level = step.level;
  phase.beside = context_.topology.by_node ? energy::Beside::program : captures.levels_beside;
  phase.version = captures.decision.number;
  phase.bytes = work.manifest.protected_bytes();
  if (work.steps.empty()) account_for_capture(work, captures);
  account_for_step(phase);
  work.steps.push_back(phase);
  return done;
}

Status NodeEngine::run(Work& work, const Captures& captures, const Reached& reached) {
  Status result;
  for (const Step& step : kSteps) {
    if (step.level != 1 && step.level != work.level) continue;
    if (step.needs_images && !work.is_kept) continue;
    if (step.level == 1 && captures.is_direct) continue;
    if (Status wanted = go_on(); !wanted) return wanted;
    const std::uint32_t before = work.manifest.levels;
    Status done = run_step(step, work, captures);
    if (work.manifest.levels != before) reached(work.manifest.levels);
    if (done) continue;
    const config::TierKind kind = step.level == 4 ? config::TierKind::global : work.node_tier;
    suspect_[static_cast<std::size_t>(kind)] = true;
    if (step.level != 4) suspect_[static_cast<std::size_t>(captures.capture_tier)] = true;
    if (done.error().code == Code::comm) {
      is_cut_off_ = true;
      return done;
    }
    // The directory is gone. To a program, "not found" would mean that there is no such version.
    if (done.error().code == Code::not_found) done.error().code = Code::io;
    if (result) result = std::move(done);
  }
  return result;
}

// Once for each level, so that people see what their settings cost a node before its memory is
// scarce.
void NodeEngine::tell_what_a_node_holds(const Work& work) {
  const int level = work.manifest.deepest_level();
  if (context_.topology.node != 0 || !context_.topology.is_leader()) return;
  if (!work.is_kept || (told_levels_ >> level & 1u) != 0) return;
  told_levels_ |= 1u << level;
  const auto mib = [](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kMiB);
  };
  const redundancy::NodeBytes bytes = redundancy::bytes_on(work.manifest, 0);
  context_.log(
      Severity::information,
      fmt::format(
          "version {} of level {} takes {:.1f} MiB of the {} tier of {}: {:.1f} for images, "
          "{:.1f} for partner copies and {:.1f} for parity",
          work.manifest.version.number, level, mib(bytes.images + bytes.copies + bytes.parity),
          store::tier_name(work.node_tier), context_.topology.node_names[0], mib(bytes.images),
          mib(bytes.copies), mib(bytes.parity)));
}

// Those that have become no file of a version.
void NodeEngine::give_back_slots(Work& work, const Captures& captures) {
  store::Tier* const tier = context_.tiers.find(captures.capture_tier);
  if (tier == nullptr) return;
  for (Image& image : work.images) {
    if (image.slot.is_open()) tier->give_back(std::move(image.slot));
  }
}

Outcome NodeEngine::checkpoint(Captures captures, const Reached& reached) {
  mark();
  governor_.begin_checkpoint();
  Work work = begin(captures);
  work.images = std::move(captures.images);
  Status result = run(work, captures, reached);
  if (work.steps.empty()) account_for_capture(work, captures);
  if (work.manifest.levels != 0) {
    book_.note_version(context_);
    tell_what_a_node_holds(work);
    catalogue_.prune(context_);
  } else if (work.is_kept) {
    catalogue_.discard(context_, work.manifest.version, work.node_tier);
  }
  give_back_slots(work, captures);
  record(work, captures, result);
  if (captures.decision.ends_period != 0) end_period_behind();
  return {std::move(work.manifest), std::move(result)};
}

Status NodeEngine::open_account() {
  return account_.open(context_,
                       {sampler_.get(), governor_.actuator(), [this](nlohmann::json&& fields) {
                          if (!ledger_.is_open()) return;
                          const auto place = is_next_energy_line_last_ ? EnergyLinePlace::last
                                                                       : EnergyLinePlace::followed;
                          ledger_.append_quietly(
                              energy_line(incarnation_, ++energy_lines_, place, std::move(fields)));
                        }});
}

// A failure of the ranks to communicate shows in the next collective call.
void NodeEngine::end_period_behind() {
  if (is_cut_off_) return;
  std::optional<double> unknown_from_s;
  if (first_call_after_ && !is_next_energy_line_last_)
    unknown_from_s = first_call_after_(accounted_call_s_);
  (void)account_.end_period(context_, unknown_from_s);
}

void NodeEngine::end_period() {
  // A program that ends at once does not wait for counters that may be dead.
  if (sampler_ != nullptr) sampler_->hurry();
  account_.end_background();  // it has no line left to write
  is_next_energy_line_last_ = true;
  end_period_behind();
}

Result<std::vector<store::Slot>> NodeEngine::acquire(config::TierKind kind,
                                                     const std::vector<std::uint64_t>& sizes) {
  revive_tiers();
  auto slots = catalogue_.acquire(context_, kind, sizes, store::SlotUse::capture);
  if (!slots) suspect_[static_cast<std::size_t>(kind)] = true;
  return slots;
}

std::optional<store::Slot> NodeEngine::try_acquire(config::TierKind kind, std::uint64_t bytes) {
  store::Tier* const tier = context_.tiers.find(kind);
  const bool is_any_suspect = std::ranges::any_of(suspect_, [](bool suspect) { return suspect; });
  if (tier == nullptr || is_any_suspect) return std::nullopt;
  auto slot = tier->acquire(bytes, context_.slot_owner(), store::SlotUse::capture);
  return slot ? std::optional(std::move(*slot)) : std::nullopt;
}

void NodeEngine::record(const Work& work, const Captures& captures, const Status& result) {
  if (!ledger_.is_open()) return;
  CheckpointLine line;
  line.manifest = &work.manifest;
  line.level_asked = work.level;
  line.wait_s = captures.times.begun_s - captures.times.called_s;
  line.waited_s = captures.times.waited_s;
  line.blocked_s = line.wait_s + captures.blocked_s();
  line.capture_s = captures.capture_s;
  line.capture_ratios = captures.times.ratios;
  line.steps = &work.steps;
  line.actuator = governor_.actuator();
  if (!result) line.error = result.error().message;
  ledger_.append(context_, checkpoint_line(line));
}

}  // namespace diapause::engine
