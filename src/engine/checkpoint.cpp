// The checkpoint, as a table of steps.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/engine.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

namespace diapause::engine {

// A step runs if `level` is 1 or the level asked for. Its result is agreed: all ranks go on, or none. After a failure
// the steps of other levels still run where `needs_level1` allows it: a level that fails costs no other.
struct Engine::Step {
  const char* phase;
  int level;
  bool needs_level1;
  Status (Engine::*run)(Work&);
};

const Engine::Step Engine::kSteps[] = {
    {"capture", 1, false, &Engine::capture_on_nodes}, {"publish", 1, true, &Engine::publish_level1},
    {"partner", 2, true, &Engine::copy_level2},       {"parity", 3, true, &Engine::encode_level3},
    {"global", 4, false, &Engine::write_level4},
};

Status Engine::usable() const {
  if (off_) return fail(Code::off, "this instance turned itself off: " + off_->message);
  if (other_rank_count_ != 0) {
    return fail(
        Code::mismatch,
        fmt::format("the checkpoints of '{}' were written by {} ranks and this run has {}: run with as many, open it "
                    "under another name, or remove them with 'diapause prune'",
                    context_->job, other_rank_count_, context_->rank_count()));
  }
  return {};
}

namespace {

// What rank 0 decides for all.
struct Decision {
  std::uint64_t number = 0;
  std::uint64_t created_unix_ns = 0;
  std::int32_t level = 0;
  std::array<std::uint8_t, 16> commit{};
  std::uint8_t ok = 0;
};

}  // namespace

// All ranks learn rank 0's decision. Ranks whose own call differs say so in the first agreed step.
Result<Work> Engine::begin(std::uint64_t version, int level) {
  Decision decision;
  if (context_->rank() == 0) {
    decision.number = version;
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
  Work work;
  work.level = level;
  work.node_tier = context_->settings.level(level == 4 ? 1 : level).tier;
  work.manifest.job = context_->job;
  work.manifest.version = {incarnation_, version, {decision.commit}};
  work.manifest.created_unix_ns = decision.created_unix_ns;
  work.manifest.node_names = context_->topology.node_names;
  work.manifest.ranks.resize(context_->rank_count());
  for (std::uint32_t r = 0; r < context_->rank_count(); ++r) {
    work.manifest.ranks[r].node = context_->topology.node_of_rank[r];
  }
  return work;
}

namespace {

format::ImageHeader identity_of(const Context& context, const Work& work) {
  format::ImageHeader identity;
  identity.version = work.manifest.version;
  identity.owner = context.rank();
  identity.rank_count = context.rank_count();
  return identity;
}

}  // namespace

Status Engine::capture_on_nodes(Work& work) {
  Context& context = *context_;
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context.tiers.get(work.node_tier));
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                      catalogue_.acquire(context, work.node_tier, {work.image_bytes()}));
  store::Slot& slot = slots[0];
  const auto capture = [&]() -> Status {
    DIAPAUSE_TRY(tier->make_version(work.manifest.version));
    const format::ImageHeader identity = identity_of(context, work);
    const MutableBytes mapping = slot.mapping();
    auto captured = mapping.empty()
                        ? capture::capture_to_file(*work.source, work.index, work.index_offset, identity, slot.file())
                        : capture::capture_to_mapping(*work.source, work.index, work.index_offset, identity, mapping);
    if (!captured) return fail(captured.error());
    work.captured = std::move(*captured);
    work.bytes = mapping.empty() ? capture::captured_bytes(*work.captured, *work.source)
                                 : capture::memory_bytes(mapping, work.captured->header.file_bytes);
    return keep(context, catalogue_, work, std::move(slot), store::image_name(context.rank()));
  };
  const Status mine = capture();
  const ImageFacts facts = mine ? facts_of(*work.captured) : ImageFacts{};
  Status captured = share_images(context, work.manifest, mine, {&facts, 1});
  if (!captured) {
    work.captured.reset();
    work.bytes.reset();
    catalogue_.discard(context, work.manifest.version, work.node_tier);
  }
  return captured;
}

Status Engine::publish_level1(Work& work) { return publish_on_nodes(*context_, catalogue_, work, 1); }

Status Engine::copy_level2(Work& work) {
  DIAPAUSE_TRY(copy_to_partners(*context_, catalogue_, work));
  return publish_on_nodes(*context_, catalogue_, work, 2);
}

Status Engine::encode_level3(Work& work) {
  DIAPAUSE_TRY(encode_parity(*context_, catalogue_, work));
  return publish_on_nodes(*context_, catalogue_, work, 3);
}

// From the captured image, or, if level 1 failed, straight from where the data are.
Status Engine::write_level4(Work& work) {
  const OutgoingImage image{context_->rank(), work.image_bytes(), [&](const sys::File& to) -> Result<ImageFacts> {
                              if (work.captured) {
                                DIAPAUSE_TRY(capture::write_bytes(*work.bytes, to));
                              } else {
                                DIAPAUSE_TRY_ASSIGN(
                                    work.captured, capture::capture_to_file(*work.source, work.index, work.index_offset,
                                                                            identity_of(*context_, work), to));
                              }
                              return facts_of(*work.captured);
                            }};
  DIAPAUSE_TRY(write_to_global(*context_, catalogue_, work.manifest, {&image, 1}));
  // The nodes' manifests should know of it too: should the global one be lost, the images there are still found.
  if (!work.manifest.has_level(1)) return {};
  return publish_on_nodes(*context_, catalogue_, work, 4);
}

Status Engine::run(Work& work) {
  Status result;
  for (const Step& step : kSteps) {
    if (step.level != 1 && step.level != work.level) continue;
    if (step.needs_level1 && !work.captured) continue;
    const double start = sys::monotonic_s();
    Status done = (this->*step.run)(work);
    work.phases.emplace_back(step.phase, sys::monotonic_s() - start);
    if (done) continue;
    const config::TierKind kind = step.level == 4 ? config::TierKind::global : work.node_tier;
    suspect_[static_cast<std::size_t>(kind)] = true;
    if (done.error().code == Code::comm) return done;
    // A directory that is gone; to a program "not found" says that there is no such version.
    if (done.error().code == Code::not_found) done.error().code = Code::io;
    if (result) result = std::move(done);
  }
  return result;
}

Status Engine::checkpoint_from(capture::BlockSource& source, format::ImageIndex index, Work& work) {
  work.source = &source;
  auto index_offset = format::lay_out(index);
  DIAPAUSE_TRY(agree(*context_, index_offset ? Status{} : fail(index_offset.error())));
  work.index_offset = *index_offset;
  work.index = std::move(index);
  revive_tiers();
  Status result = run(work);
  if (work.manifest.levels != 0) {
    catalogue_.prune(*context_);
  } else if (work.captured) {
    catalogue_.discard(*context_, work.manifest.version, work.node_tier);
  }
  return result;
}

Status Engine::checkpoint(std::uint64_t version, int level, CheckpointInfo& info) {
  const double start = sys::monotonic_s();
  info = {};
  info.version = version;
  info.level_asked = level;
  DIAPAUSE_TRY(usable());
  DIAPAUSE_TRY_ASSIGN(Work work, begin(version, level));
  info.taken = true;
  format::ImageIndex index;
  std::vector<const std::byte*> data;
  for (const ProtectedRegion& region : regions_) {
    index.regions.push_back(region.description);
    data.push_back(region.data);
    info.bytes += region.description.stored_bytes;
  }
  capture::MemorySource source(std::move(data));
  Status result = checkpoint_from(source, std::move(index), work);
  info.level_reached = work.manifest.deepest_level();
  for (const format::RankRecord& rank : work.manifest.ranks) info.bytes_total += rank.protected_bytes;
  // A failed attempt counts too: the next one is due after the interval, not at the next call.
  double now_s = sys::monotonic_s() - opened_s_;
  if (context_->comm->broadcast(std::as_writable_bytes(std::span(&now_s, 1)), 0)) schedule_.taken(level, now_s);
  if (!result && result.error().code == Code::comm) off_ = result.error();
  info.blocked_s = sys::monotonic_s() - start;
  record(work, info, result);
  return result;
}

void Engine::record(const Work& work, const CheckpointInfo& info, const Status& result) {
  if (!ledger_) return;
  nlohmann::json phases = nlohmann::json::object();
  for (const auto& [phase, seconds] : work.phases) phases[phase] = seconds;
  const nlohmann::json line = {{"schema", 1},
                               {"event", "checkpoint"},
                               {"time_unix_s", static_cast<double>(work.manifest.created_unix_ns) * 1e-9},
                               {"incarnation", incarnation_},
                               {"version", info.version},
                               {"level_asked", info.level_asked},
                               {"level_reached", info.level_reached},
                               {"bytes_total", info.bytes_total},
                               {"blocked_s", info.blocked_s},
                               {"phases", phases},
                               {"error", result ? nlohmann::json(nullptr) : nlohmann::json(result.error().message)}};
  if (Status appended = ledger_->append(line.dump()); !appended) {
    context_->log(Severity::warning, appended.error().message);
    ledger_.reset();
  }
}

}  // namespace diapause::engine
