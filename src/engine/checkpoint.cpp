// The checkpoint as the calling rank sees it: agree, capture, hand over.
#include <fmt/core.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "engine/ledger_lines.hpp"
#include "sys/process.hpp"

namespace diapause::engine {

Status Engine::usable() const {
  if (off_) return fail(Code::off, "this instance turned itself off: " + off_->message);
  if (host_->other_rank_count() != 0) {
    return fail(
        Code::mismatch,
        fmt::format("the checkpoints of '{}' were written by {} ranks and this run has {}: run with as many, open it "
                    "under another name, or remove them with 'diapause prune'",
                    context_->job, host_->other_rank_count(), context_->rank_count()));
  }
  return {};
}

// All ranks learn rank 0's decision. Ranks whose own call differs say so in the first agreed step.
Result<Decision> Engine::begin(std::uint64_t version, int level, std::uint64_t next_bytes, CheckpointInfo& info) {
  Decision decision;
  if (context_->rank() == 0) {
    decision.suspect = std::exchange(suspect_, false) ? 1 : 0;
    const double now_s = sys::monotonic_s();
    if (now_s - settled_s_ >= kSettleEvery_s) decision.settle = 1;
    if (decision.settle != 0) settled_s_ = now_s;
    decision.skip = make_room_in_flight(next_bytes, info) ? 0 : 1;
    decision.number = version;
    decision.lossy_restarts = lossy_restarts_;
    decision.level = level;
    decision.created_unix_ns = sys::unix_time_ns();
    decision.ok = sys::random_bytes(std::as_writable_bytes(std::span(decision.commit))) ? 1 : 0;
    // Attempts at one number must have an order, and that of their ids counts: it begins with their count.
    ++attempts_;
    for (std::size_t i = 0; i < 4; ++i) decision.commit[i] = static_cast<std::uint8_t>(attempts_ >> (24 - 8 * i));
  }
  DIAPAUSE_TRY(context_->comm->broadcast(std::as_writable_bytes(std::span(&decision, 1)), 0));
  Status mine;
  if (decision.ok == 0) mine = fail(Code::io, "the system gives no random numbers");
  if (decision.number != version || decision.level != level) {
    mine = fail(Code::argument,
                fmt::format("asks for version {} at level {}, rank 0 for version {} at level {}: all ranks must "
                            "make the same call",
                            version, level, decision.number, decision.level));
  }
  if (level < 1 || level > 4) mine = fail(Code::argument, fmt::format("level {}: levels are 1 to 4", level));
  if (version == kNewest) mine = fail(Code::argument, "this version number stands for the newest version");
  DIAPAUSE_TRY(agree(*context_, mine));
  return decision;
}

// Takes hold of this rank's memory; what is left to be done, end_capture() does.
Status Engine::begin_capture(const Subject& subject, const Plan& plan, store::Slot slot, Captures& captures) {
  const bool is_memory = subject.memory.size() == plan.index.regions.size();
  if (slot.mapping().empty() || !is_memory) return stream(subject.source, plan, std::move(slot), captures);
  if (slot.content() == 0) slot.set_content(++slot_contents_);
  captures.images.push_back({{}, std::move(slot), nullptr});
  const store::Slot& to = captures.images.front().slot;
  if (bill_.is_open()) unbilled_ = plan.identity.version;
  return capturer_->begin({subject.memory, plan.index, plan.index_offset, plan.identity, to.mapping(), to.content()});
}

// Nothing, where that was done before. Whatever goes wrong, the others wait for what this rank says of its capture.
Status Engine::end_capture(Captures& captures) try {
  if (captures.images.empty() || captures.images.front().bytes != nullptr) return {};
  Image& image = captures.images.front();
  DIAPAUSE_TRY_ASSIGN(const capture::Captured captured, capturer_->drain());
  image.facts = facts_of(captured.header, captured.index);
  image.bytes = capture::memory_bytes(image.slot.mapping(), captured.header.file_bytes);
  return {};
} catch (const std::exception& error) {
  return fail(Code::internal, std::string("the capture: ") + error.what());
}

// What the program waits for of a capture: all of it, unless the rest can be done behind its back.
void Engine::capture_now(const Subject& subject, const Plan& plan, store::Slot slot, Captures& captures) {
  governor::PhaseGuard phase = host_->begin_capture(capture::image_bytes(plan.index, plan.index_offset));
  captures.result = begin_capture(subject, plan, std::move(slot), captures);
  if (captures.result && !goes_on_behind()) captures.result = end_capture(captures);
  if (captures.result) phase.succeeded();
  captures.times.ratios = phase.ratios();
}

// The whole image at once. `source` must live as long as the image's bytes.
Status Engine::stream(capture::BlockSource& source, const Plan& plan, store::Slot slot, Captures& captures) {
  const MutableBytes mapping = slot.mapping();
  slot.set_content(0);
  DIAPAUSE_TRY_ASSIGN(capture::Captured captured,
                      mapping.empty()
                          ? capture::capture_to_file(source, plan.index, plan.index_offset, plan.identity, slot.file())
                          : capture::capture_to_mapping(source, plan.index, plan.index_offset, plan.identity, mapping));
  Image image;
  image.facts = facts_of(captured.header, captured.index);
  image.slot = std::move(slot);
  const std::uint64_t bytes = captured.header.file_bytes;
  image.bytes =
      mapping.empty() ? capture::captured_bytes(std::move(captured), source) : capture::memory_bytes(mapping, bytes);
  captures.images.push_back(std::move(image));
  return {};
}

// The line on how the last capture was made, once it is.
void Engine::bill_capture() {
  if (!unbilled_ || !drain_.is_done()) return;
  bill_.append(*context_, capture_line(*unbilled_, capturer_->report()));
  unbilled_.reset();
}

// Completes the capture and submits it, behind the program's back if it would have to wait. Returns the job's number.
std::uint64_t Engine::hand_over(Captures captures) {
  const auto complete = [this](Captures& all) {
    const double start = sys::monotonic_s();
    if (all.result) all.result = end_capture(all);
    const double took_s = sys::monotonic_s() - start;
    all.capture_s += took_s;
    if (all.times.blocked_s > 0) {  // the program went on before
      all.times.drain_begun_s = start;
      all.times.drain_s = took_s;
    }
    return host_->submit(std::move(all));
  };
  if (!captures.result || !goes_on_behind()) return complete(captures);
  const std::uint64_t number = host_->next_number();
  const double blocked_s = captures.blocked_s();
  captures.times.blocked_s = blocked_s;
  captures.blocked_s = [blocked_s] { return blocked_s; };
  const auto pending = std::make_shared<Captures>(std::move(captures));
  drain_.start(context_->settings.async, [complete, pending] { complete(*pending); });
  return number;
}

// An image straight from where the data are into the global tier.
Result<GlobalFacts> Engine::write_direct(capture::BlockSource& source, const Plan& plan, const GlobalTarget& to) {
  if (context_->settings.global_mode != config::GlobalMode::mpi_io) {
    DIAPAUSE_TRY_ASSIGN(const capture::Captured captured,
                        capture::capture_to_file(source, plan.index, plan.index_offset, plan.identity, to.range));
    return GlobalFacts{facts_of(captured.header, captured.index), {}, 0};
  }
  const auto image = take_in_place(source, plan);
  DIAPAUSE_TRY(agree(*context_, image ? Status{} : fail(image.error())));
  DIAPAUSE_TRY(context_->comm->write_files({to.range.file.path(), to.file, to.range.begin}, *image->bytes));
  return GlobalFacts{image->facts, {}, 0};
}

Result<ImageInPlace> Engine::take_in_place(capture::BlockSource& source, const Plan& plan) {
  DIAPAUSE_TRY_ASSIGN(capture::Captured captured,
                      capture::capture_in_place(source, plan.index, plan.index_offset, plan.identity));
  const ImageFacts facts = facts_of(captured.header, captured.index);
  return ImageInPlace{facts, capture::captured_bytes(std::move(captured), source)};
}

// A slot in the first tier that takes the image: behind the program memory, else where the image is to lie at the end.
Result<store::Slot> Engine::acquire_slot(Captures& captures, std::uint64_t bytes) {
  std::vector<config::TierKind> tiers = {captures.node_tier};
  if (host_->is_background()) {
    if (captures.node_tier != config::TierKind::memory) tiers.insert(tiers.begin(), config::TierKind::memory);
    if (captures.decision.level == 4) tiers.push_back(config::TierKind::global);
  }
  std::optional<Error> why;
  for (const config::TierKind kind : tiers) {
    if (captures.decision.suspect != 0) DIAPAUSE_TRY(host_->check_tier(kind));
    auto slot = host_->acquire(kind, bytes);
    if (slot || slot.error().code == Code::comm) {
      captures.capture_tier = kind;
      if (why && std::exchange(told_of_capture_in_, kind) != kind && context_->rank() == 0) {
        context_->log(Severity::warning, fmt::format("captures are written to the {} tier while the program waits: {}",
                                                     store::tier_name(kind), why->message));
      }
      return slot;
    }
    if (!why) why = std::move(slot.error());
  }
  return fail(std::move(*why));
}

Status Engine::checkpoint_from(Subject subject, const Decision& decision, CheckpointInfo& info) {
  const double start = sys::monotonic_s();
  Plan plan;
  auto index_offset = format::lay_out(subject.index);
  DIAPAUSE_TRY(agree(*context_, index_offset ? Status{} : fail(index_offset.error())));
  plan.index_offset = *index_offset;
  plan.index = std::move(subject.index);
  plan.identity.version = {host_->incarnation(), decision.number, {decision.commit}};
  plan.identity.owner = context_->rank();
  plan.identity.rank_count = context_->rank_count();

  Captures captures;
  captures.decision = decision;
  captures.times.called_s = subject.called_s;
  captures.times.begun_s = start;
  captures.node_tier = context_->settings.level(decision.level == 4 ? 1 : decision.level).tier;
  captures.capture_tier = captures.node_tier;
  const std::uint64_t image_bytes = capture::image_bytes(plan.index, plan.index_offset);
  captures.is_direct = decision.level == 4 && context_->settings.global_mode != config::GlobalMode::staged;
  if (!captures.is_direct) {
    auto slot = acquire_slot(captures, image_bytes);
    if (!slot && slot.error().code == Code::comm) return fail(std::move(slot.error()));
    if (slot) capture_now(subject, plan, std::move(*slot), captures);
    if (!slot) captures.result = fail(slot.error());
  }
  if (decision.level == 4 && !host_->is_background()) {
    captures.direct = {{context_->rank(), image_bytes,
                        [&](const GlobalTarget& to) { return write_direct(subject.source, plan, to); }}};
    // Writes of MPI are collective, and of a size known before.
    if (context_->settings.global_mode != config::GlobalMode::mpi_io) {
      captures.direct.front().in_place = [&] { return take_in_place(subject.source, plan); };
      captures.direct.front().index = &plan.index;
      captures.direct.front().source = &subject.source;
    }
  }
  captures.capture_s = sys::monotonic_s() - start;
  captures.blocked_s = [start] { return sys::monotonic_s() - start; };
  // What could not be captured is an error of this call, whatever becomes of it in the background.
  Status failed = host_->is_background() ? captures.result : Status{};
  InFlight taken{0, decision.number, decision.level, image_bytes, {}};
  taken.job = hand_over(std::move(captures));
  if (!host_->is_background()) {
    taken.progress = host_->progress(taken.job);
    info.level_reached = taken.progress.deepest_level();
    info.bytes_total = taken.progress.bytes_total;
    failed = taken.progress.result;
  }
  taken_.push_back(std::move(taken));
  catch_up();
  return failed;
}

Status Engine::checkpoint(std::uint64_t version, int level, CheckpointInfo& info) {
  const double start = sys::monotonic_s();
  info = {};
  info.version = version;
  info.level_asked = level;
  DIAPAUSE_TRY(usable());
  DIAPAUSE_TRY(scrub_wait());  // a checkpoint would make damage look sound
  catch_up();
  report_background(info);
  std::vector<const std::byte*> data;
  for (const ProtectedRegion& region : regions_) data.push_back(region.data);
  capture::MemorySource source(std::move(data));
  Subject subject{source, {}, {}, start};
  for (const ProtectedRegion& region : regions_) {
    subject.index.regions.push_back(region.description);
    subject.memory.push_back({region.data, region.declaration, are_devices_about_});
    info.bytes += region.description.stored_bytes;
  }
  DIAPAUSE_TRY_ASSIGN(const Decision decision, begin(version, level, info.bytes, info));
  if (level == 4 && decision.skip == 0) DIAPAUSE_TRY(apply_invariants(subject.index));
  info.taken = decision.skip == 0;
  info.skipped = decision.skip != 0;
  if (info.skipped) {
    info.blocked_s = sys::monotonic_s() - start;
    return {};
  }
  drain_.wait();
  bill_capture();
  Status result = checkpoint_from(std::move(subject), decision, info);
  // A failed attempt counts too: the next one is due after the interval, not at the next call.
  double now_s = sys::monotonic_s() - opened_s_;
  if (context_->comm->broadcast(std::as_writable_bytes(std::span(&now_s, 1)), 0)) schedule_.taken(level, now_s);
  if (!result && result.error().code == Code::comm) off_ = result.error();
  info.blocked_s = sys::monotonic_s() - start;
  if (info.level_reached == level) deadline_.learn(level, info.bytes_total, info.blocked_s);
  return result;
}

}  // namespace diapause::engine
