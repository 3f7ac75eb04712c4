#include "engine/node/captures.hpp"

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
