// How a checkpoint's files become part of a version.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/job/context.hpp"
#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

ImageFacts facts_of(const format::ImageHeader& header, const format::ImageIndex& index);

// The manifest of a version that has no images and no level yet, under the placement of today.
format::Manifest make_manifest(const Context& context, const format::VersionId& version, std::uint64_t created_unix_ns);

// Puts what is said of an image into the manifest. Code::comm if it names no rank of it.
Status put_image(format::Manifest& manifest, const ImageFacts& facts);

// Everybody learns what every image is, each from the rank or node that made it. Fails on all ranks if `mine` is a
// failure anywhere. Collective.
Status share_images(Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images);

// Names a settled slot as part of the version and remembers it.
Status keep(Context& context, Catalogue& catalogue, const Work& work, store::Slot slot, const std::string& name);

// Syncs and publishes in the node tier, by the node leaders, with `level` (and with it level 1, whose images are there)
// added to the manifest. Collective.
Status publish_on_nodes(Context& context, Catalogue& catalogue, Work& work, int level);

}  // namespace diapause::engine
