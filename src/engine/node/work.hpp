// Holds the data of one checkpoint in progress.
#pragma once

#include <memory>
#include <vector>

#include "base/byte_source.hpp"
#include "capture/capture.hpp"
#include "engine/accounting/account.hpp"
#include "engine/job/context.hpp"
#include "engine/node/image_source.hpp"

namespace diapause::engine {

// A captured image of a rank that this process acts for.
struct Image {
  ImageFacts facts;
  store::Slot slot;  // its place in the node tier; moves to the catalogue when it is kept
  std::unique_ptr<ByteSource> bytes;  // gives the whole image
};

// A file of a version that is missing on a node: the image of rank `index`, or the parity of member
// `member` of group `index`.
struct MissingFile {
  std::uint32_t node = 0;
  std::uint32_t is_parity = 0;
  std::uint32_t index = 0;
  std::uint32_t member = 0;
};

struct Work {
  int level = 1;              // the level that was asked for
  format::Manifest manifest;  // equal on all ranks; its levels grow as they are reached
  config::TierKind node_tier = config::TierKind::memory;
  // The images of all ranks that this process acts for, in ascending order of ranks, or none if the
  // capture failed.
  std::vector<Image> images;
  // All files that the version lacked before the first of them was put back; equal everywhere.
  std::vector<MissingFile> missing;
  bool is_kept = false;      // the images are in the version's directory on all nodes
  std::vector<Phase> steps;  // the steps that have run so far

  ByteSource& bytes_of(std::uint32_t rank);
};

}  // namespace diapause::engine
