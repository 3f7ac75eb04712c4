// Makes the files of a checkpoint part of a version.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/job/context.hpp"
#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

ImageFacts facts_of(const format::ImageHeader& header, const format::ImageIndex& index);

// Returns the manifest of a version without images and levels, with the present placement.
format::Manifest make_manifest(const Context& context, const format::VersionId& version,
                               std::uint64_t created_unix_ns);

// Records an image in the manifest. Code::comm if it names no rank of the manifest.
Status put_image(format::Manifest& manifest, const ImageFacts& facts);

// Exchanges the facts of every image; each comes from the rank or node that made the image. Fails
// on all ranks if `mine` is a failure anywhere. Collective.
Status share_images(const Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images);

// Gives a slot its name in the version, and remembers it.
Status keep(const Context& context, Catalogue& catalogue, const Work& work, store::Slot slot,
            const std::string& name);

// The leaders of the nodes sync the version and publish it in the node tier. They add `level` to
// the manifest, and level 1 as well, because its images are there. Collective.
Status publish_on_nodes(const Context& context, Catalogue& catalogue, Work& work, int level);

}  // namespace diapause::engine
