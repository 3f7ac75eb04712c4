// Level 4: images into the global tier.
#include <cstring>

#include "engine/work.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

constexpr config::TierKind kGlobal = config::TierKind::global;

Status write_one(store::Tier& tier, const format::VersionId& version, const OutgoingImage& image, store::Slot slot,
                 std::vector<ImageFacts>& facts) {
  DIAPAUSE_TRY_ASSIGN(const ImageFacts written, image.write(slot.file()));
  facts.push_back(written);
  return tier.settle(slot, version, store::image_name(image.rank));
}

Status publish(Context& context, Catalogue& catalogue, store::Tier& tier, format::Manifest& manifest) {
  format::Manifest deeper = manifest;
  deeper.levels |= 1u << 4;
  Status mine;
  if (context.acts_for(kGlobal)) {
    mine = tier.sync_version(deeper.version);
    if (mine) mine = tier.publish(deeper);
  }
  DIAPAUSE_TRY(agree(context, mine));
  manifest.levels = deeper.levels;
  catalogue.add(manifest, kGlobal);
  return {};
}

}  // namespace

ImageFacts facts_of(const capture::Captured& captured) {
  ImageFacts facts{captured.header.owner, 0, {captured.header.file_bytes, captured.header.index_digest}};
  for (const format::Region& region : captured.index.regions) facts.protected_bytes += region.stored_bytes;
  return facts;
}

Status share_images(Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, mine, std::as_bytes(images)));
  for (const ByteVector& part : all) {
    ImageFacts facts;
    if (part.size() % sizeof facts != 0) return fail(Code::comm, "a description of images did not arrive whole");
    for (std::size_t at = 0; at < part.size(); at += sizeof facts) {
      std::memcpy(&facts, part.data() + at, sizeof facts);
      if (facts.rank >= manifest.ranks.size()) return fail(Code::comm, "a description of images names no rank");
      manifest.ranks[facts.rank].image = facts.image;
      manifest.ranks[facts.rank].protected_bytes = facts.protected_bytes;
    }
  }
  return {};
}

Status write_to_global(Context& context, Catalogue& catalogue, format::Manifest& manifest,
                       std::span<const OutgoingImage> images) {
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context.tiers.get(kGlobal));
  Status made;
  if (context.acts_for(kGlobal)) made = tier->make_version(manifest.version);
  DIAPAUSE_TRY(agree(context, made));
  std::vector<std::uint64_t> sizes;
  for (const OutgoingImage& image : images) sizes.push_back(image.bytes);
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots, catalogue.acquire(context, kGlobal, sizes));
  std::vector<ImageFacts> facts;
  Status written;
  for (std::size_t i = 0; i < images.size() && written; ++i) {
    written = write_one(*tier, manifest.version, images[i], std::move(slots[i]), facts);
  }
  Status done = share_images(context, manifest, written, facts);
  if (done) done = publish(context, catalogue, *tier, manifest);
  if (!done) catalogue.discard(context, manifest.version, kGlobal);
  return done;
}

}  // namespace diapause::engine
