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
#include "engine/account.hpp"
#include "engine/catalogue.hpp"
#include "engine/context.hpp"

namespace diapause::engine {

// What a manifest says of one rank's image.
struct ImageFacts {
  std::uint32_t rank = 0;
  std::uint64_t protected_bytes = 0;
  format::ImageRecord image;
};

// A captured image of a rank this process acts for.
struct Image {
  ImageFacts facts;
  store::Slot slot;                   // where it lies in the node tier; moves to the catalogue when it is kept
  std::unique_ptr<ByteSource> bytes;  // all of it
};

struct Work {
  int level = 1;              // asked
  format::Manifest manifest;  // equal on all ranks; levels grow as they are reached
  config::TierKind node_tier = config::TierKind::memory;
  std::vector<Image> images;  // by rank, ascending: of all ranks acted for, or empty if the capture failed
  bool is_kept = false;       // the images are in the version's directory, on all nodes
  std::vector<Phase> steps;   // taken so far

  ByteSource& bytes_of(std::uint32_t rank);
};

// Level 2: sends the images to the partners and keeps those of others. Fills the partners in the manifest. Collective.
Status copy_to_partners(Context& context, Catalogue& catalogue, Work& work);

// Level 3: computes and keeps the parities of the groups. Fills the groups in the manifest. Collective.
Status encode_parity(Context& context, Catalogue& catalogue, Work& work);

ImageFacts facts_of(const format::ImageHeader& header, const format::ImageIndex& index);

// Of a version that has no images and no level yet, under the placement of today.
format::Manifest make_manifest(const Context& context, const format::VersionId& version, std::uint64_t created_unix_ns);

// Everybody learns what every image is, each from the rank or node that made it. Fails on all ranks if `mine` is a
// failure anywhere. Collective.
Status share_images(Context& context, format::Manifest& manifest, const Status& mine,
                    std::span<const ImageFacts> images);

// Where an image goes in the global tier.
struct GlobalTarget {
  capture::FileRange range;
  std::uint32_t file = 0;  // its number among the version's files
};

// What a manifest says of one rank's image in the global tier.
struct GlobalFacts {
  ImageFacts image;             // as it is, or would be, on a node
  format::ImageRecord encoded;  // if it was compressed
  double greatest_error = 0;    // then
  double encode_s = 0;          // of the time that it took its writer: to compress it, and to find out how

  const format::ImageRecord& stored() const { return encoded.file_bytes != 0 ? encoded : image.image; }
};

// An image whose data lie where they were made.
struct ImageInPlace {
  ImageFacts facts;
  std::unique_ptr<ByteSource> bytes;
};

// One rank's image on its way to the global tier.
struct OutgoingImage {
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;  // of the whole image; if it is compressed, no more than that
  // Writes all of it; does not sync. Called once on every rank, or on none.
  std::function<Result<GlobalFacts>(const GlobalTarget&)> write;
  // The slot of the global tier that holds it already; it becomes its file, unless ranks share files.
  store::Slot* slot = nullptr;
  ImageFacts facts = {};  // then
  // For whoever would compress it instead; empty and null where `write` is the only way.
  std::function<Result<ImageInPlace>()> in_place = {};
  const format::ImageIndex* index = nullptr;  // laid out
  capture::BlockSource* source = nullptr;     // of its regions
  double plan_s = 0;                          // it took to find out how to compress it
};

struct Outgoing {
  std::vector<OutgoingImage> images;  // of this process
  bool shrinks = false;               // one may become smaller than it says
};

// Into what the step of level 4 falls apart.
struct GlobalTimes {
  std::vector<double> encode_s;  // by rank, GlobalFacts
  double published_from_s = 0;   // sys::monotonic_s()
};

// Level 4: writes the images that this process acts for, and publishes the version in the global tier, with level 4
// added to the manifest. After a failure nothing of it is left there. Collective.
Result<GlobalTimes> write_to_global(Context& context, Catalogue& catalogue, format::Manifest& manifest,
                                    const Outgoing& outgoing);

// Names a settled slot as part of the version and remembers it.
Status keep(Context& context, Catalogue& catalogue, const Work& work, store::Slot slot, const std::string& name);

// Syncs and publishes in the node tier, by the node leaders, with `level` (and with it level 1, whose images are there)
// added to the manifest. Collective.
Status publish_on_nodes(Context& context, Catalogue& catalogue, Work& work, int level);

}  // namespace diapause::engine
