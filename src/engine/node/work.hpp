// One checkpoint under way.
#pragma once

#include <memory>
#include <vector>

#include "base/byte_source.hpp"
#include "capture/capture.hpp"
#include "engine/accounting/account.hpp"
#include "engine/job/context.hpp"
#include "engine/node/image_source.hpp"

namespace diapause::engine {

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

}  // namespace diapause::engine
