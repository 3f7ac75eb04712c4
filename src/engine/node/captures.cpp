#include "engine/node/captures.hpp"

#include <fmt/core.h>

#include <utility>

#include "engine/node/publish.hpp"
#include "sys/process.hpp"

namespace diapause::engine {

Result<ImagePlan> lay_out_image(format::ImageIndex index) {
  ImagePlan plan;
  DIAPAUSE_TRY_ASSIGN(plan.index_offset, format::lay_out(index));
  plan.index = std::move(index);
  return plan;
}

void assign(ImagePlan& plan, const Context& context, std::uint32_t incarnation,
            const Decision& decision) {
  plan.identity.version = {incarnation, decision.number, {decision.commit}};
  plan.identity.owner = context.rank();
  plan.identity.rank_count = context.rank_count();
}

Result<ImagePlan> plan_image(const Context& context, std::uint32_t incarnation,
                             const Decision& decision, format::ImageIndex index) {
  DIAPAUSE_TRY_ASSIGN(ImagePlan plan, lay_out_image(std::move(index)));
  assign(plan, context, incarnation, decision);
  return plan;
}

Captures begin_captures(const Context& context, const Decision& decision, double called_s) {
  Captures captures;
  captures.decision = decision;
  captures.times.called_s = called_s;
  captures.times.begun_s = sys::monotonic_s();
  captures.node_tier = context.settings.level(decision.level == 4 ? 1 : decision.level).tier;
  captures.capture_tier = captures.node_tier;
  captures.is_direct =
      decision.level == 4 && context.settings.global_mode != config::GlobalMode::staged;
  return captures;
}

Result<store::Slot> find_slot(const Context& context, Captures& captures, SlotSearch search,
                              const std::function<Result<store::Slot>(config::TierKind)>& acquire) {
  std::vector<config::TierKind> tiers = {search.first};
  if (tiers.back() != captures.node_tier) tiers.push_back(captures.node_tier);
  if (search.may_be_global && captures.decision.level == 4)
    tiers.push_back(config::TierKind::global);
  const bool has_disk = !context.settings.local_path.empty();
  if (tiers.back() == config::TierKind::memory && has_disk)
    tiers.push_back(config::TierKind::local);
  std::optional<Error> why;
  for (const config::TierKind kind : tiers) {
    const bool is_instead =
        kind == config::TierKind::local && captures.node_tier == config::TierKind::memory;
    if (is_instead && why->code != Code::full) break;  // a broken tier has to be repaired
    auto slot = acquire(kind);
    if (!slot && slot.error().code != Code::comm) {
      if (!why) why = std::move(slot.error());
      continue;
    }
    captures.capture_tier = kind;
    if (is_instead) captures.node_tier = kind;
    if (why && std::exchange(search.told_of, kind) != kind && context.rank() == 0) {
      context.log(Severity::warning,
                  fmt::format("captures are written to the {} tier while the program waits: {}",
                              store::tier_name(kind), why->message));
    }
    return slot;
  }
  return fail(std::move(*why));
}

Status add_image(Captures& captures, const ImagePlan& plan, capture::BlockSource& source,
                 store::Slot slot) {
  const MutableBytes mapping = slot.mapping();
  slot.set_content(0);
  DIAPAUSE_TRY_ASSIGN(capture::Captured captured,
                      mapping.empty()
                          ? capture::capture_to_file(source, plan.index, plan.index_offset,
                                                     plan.identity, slot.file())
                          : capture::capture_to_mapping(source, plan.index, plan.index_offset,
                                                        plan.identity, mapping));
  Image image;
  image.facts = facts_of(captured.header, captured.index);
  image.slot = std::move(slot);
  const std::uint64_t bytes = captured.header.file_bytes;
  image.bytes = mapping.empty() ? capture::captured_bytes(std::move(captured), source)
                                : capture::memory_bytes(mapping, bytes);
  captures.images.push_back(std::move(image));
  return {};
}

}  // namespace diapause::engine
