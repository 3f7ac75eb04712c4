// One checkpoint under way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.hpp"
#include "capture/capture.hpp"
#include "engine/catalogue.hpp"
#include "engine/context.hpp"

namespace diapause::engine {

struct Work {
  int level = 1;              // asked
  format::Manifest manifest;  // equal on all ranks; levels grow as they are reached
  config::TierKind node_tier = config::TierKind::memory;
  capture::BlockSource* source = nullptr;  // the data of the regions in `index`
  format::ImageIndex index;                // laid out, checksums still open
  std::uint64_t index_offset = 0;

  // Filled by the capture.
  std::optional<capture::Captured> captured;
  std::unique_ptr<ByteSource> bytes;  // of this rank's image
  store::Slot slot;                   // where it lies

  std::vector<std::pair<const char*, double>> phases;  // name, seconds

  std::uint64_t image_bytes() const { return capture::image_bytes(index, index_offset); }
};

// Level 2: sends this rank's image to its partner and keeps those of others. Fills the partners in the manifest.
// Collective.
Status copy_to_partners(Context& context, Catalogue& catalogue, Work& work);

// Level 3: computes and keeps the parities of this rank's groups. Fills the groups in the manifest. Collective.
Status encode_parity(Context& context, Catalogue& catalogue, Work& work);

// What a manifest says of one rank's image.
struct ImageFacts {
  std::uint32_t rank = 0;
  std::uint64_t protected_bytes = 0;
  format::ImageRecord image;
};

ImageFacts facts_of(const capture::Captured& captured);

// Everybody learns what every image is, each from the rank or node that made it. Fails on all ranks if `mine` is a
// failure anywhere. Collective.
Status share_images(Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images);

// One rank's image on its way to the global tier.
struct OutgoingImage {
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;                                    // of the whole image
  std::function<Result<ImageFacts>(const sys::File&)> write;  // all of it; does not sync
};

// Level 4: writes the images that this process acts for, and publishes the version in the global tier, with level 4
// added to the manifest. After a failure nothing of it is left there. Collective.
Status write_to_global(Context& context, Catalogue& catalogue, format::Manifest& manifest,
                       std::span<const OutgoingImage> images);

// Names a settled slot as part of the version and remembers it.
Status keep(Context& context, Catalogue& catalogue, const Work& work, store::Slot slot, const std::string& name);

// Syncs and publishes in the node tier, by the node leaders, with `level` (and with it level 1, whose images are there)
// added to the manifest. Collective.
Status publish_on_nodes(Context& context, Catalogue& catalogue, Work& work, int level);

}  // namespace diapause::engine
