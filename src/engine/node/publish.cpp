#include "engine/node/publish.hpp"

#include <algorithm>

#include "engine/job/gather.hpp"
#include "store/names.hpp"

namespace diapause::engine {

Status put_image(format::Manifest& manifest, const ImageFacts& facts) {
  if (facts.rank >= manifest.ranks.size())
    return fail(Code::comm, "a description of images names no rank");
  manifest.ranks[facts.rank].image = facts.image;
  manifest.ranks[facts.rank].protected_bytes = facts.protected_bytes;
  return {};
}

ImageFacts facts_of(const format::ImageHeader& header, const format::ImageIndex& index) {
  ImageFacts facts{header.owner, 0, {header.file_bytes, header.index_digest}};
  for (const format::Region& region : index.regions) facts.protected_bytes += region.raw_bytes();
  return facts;
}

Status share_images(const Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images) {
  DIAPAUSE_TRY_ASSIGN(const Gathered<ImageFacts> all,
                      gather_values<ImageFacts>(context, mine, images, "a description of images"));
  for (const std::vector<ImageFacts>& of_process : all) {
    for (const ImageFacts& facts : of_process) DIAPAUSE_TRY(put_image(manifest, facts));
  }
  return {};
}

format::Manifest make_manifest(const Context& context, const format::VersionId& version,
                               std::uint64_t created_unix_ns) {
  format::Manifest manifest;
  manifest.job = context.job;
  manifest.version = version;
  manifest.created_unix_ns = created_unix_ns;
  manifest.node_names = context.topology.node_names;
  manifest.ranks.resize(context.rank_count());
  for (std::uint32_t r = 0; r < context.rank_count(); ++r)
    manifest.ranks[r].node = context.topology.node_of_rank[r];
  return manifest;
}

ByteSource& Work::bytes_of(std::uint32_t rank) {
  const auto image = std::find_if(images.begin(), images.end(),
                                  [&](const Image& one) { return one.facts.rank == rank; });
  return *image->bytes;
}

Status keep(const Context& context, Catalogue& catalogue, const Work& work, store::Slot slot,
            const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context.tiers.get(work.node_tier));
  catalogue.tell_of_slow_writes(context, *tier, slot.file());
  if (Status settled = tier->settle(slot, work.manifest.version, name); !settled) {
    tier->discard(std::move(slot));
    return settled;
  }
  catalogue.own({work.manifest.version, work.node_tier, name, std::move(slot)});
  return {};
}

Status publish_on_nodes(const Context& context, Catalogue& catalogue, Work& work, int level) {
  format::Manifest manifest = work.manifest;
  manifest.levels |= 1u << level | 1u << 1;
  Status mine;
  if (context.topology.is_leader()) {
    auto tier = context.tiers.get(work.node_tier);
    mine = tier ? catalogue.prove(**tier, manifest.version) : fail(tier.error());
    if (mine) mine = (*tier)->sync_version(manifest.version);
    if (mine) mine = (*tier)->publish(manifest);
  }
  DIAPAUSE_TRY(agree(context, mine));
  work.manifest.levels = manifest.levels;
  catalogue.add(work.manifest, work.node_tier);
  return {};
}

}  // namespace diapause::engine
