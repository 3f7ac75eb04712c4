// How a checkpoint's files become part of a version.
#include <algorithm>

#include "engine/work.hpp"
#include "store/names.hpp"

namespace diapause::engine {

ByteSource& Work::bytes_of(std::uint32_t rank) {
  const auto image =
      std::find_if(images.begin(), images.end(), [&](const Image& one) { return one.facts.rank == rank; });
  return *image->bytes;
}

Status keep(Context& context, Catalogue& catalogue, const Work& work, store::Slot slot, const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context.tiers.get(work.node_tier));
  catalogue.tell_of_slow_writes(context, *tier, slot.file());
  DIAPAUSE_TRY(tier->settle(slot, work.manifest.version, name));
  catalogue.own({work.manifest.version, work.node_tier, name, std::move(slot)});
  return {};
}

Status publish_on_nodes(Context& context, Catalogue& catalogue, Work& work, int level) {
  format::Manifest manifest = work.manifest;
  manifest.levels |= 1u << level | 1u << 1;
  Status mine;
  if (context.topology.is_leader()) {
    auto tier = context.tiers.get(work.node_tier);
    mine = tier ? (*tier)->sync_version(manifest.version) : fail(tier.error());
    if (mine) mine = (*tier)->publish(manifest);
  }
  DIAPAUSE_TRY(agree(context, mine));
  work.manifest.levels = manifest.levels;
  catalogue.add(work.manifest, work.node_tier);
  return {};
}

}  // namespace diapause::engine
