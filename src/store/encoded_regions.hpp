// The compressed regions of an image: where their blocks lie, and their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.hpp"
#include "base/result.hpp"
#include "codec/block_coder.hpp"
#include "format/image.hpp"

namespace diapause::store {

// Several threads may decode at once, each with a workspace of its own.
class EncodedRegions {
 public:
  // Code::mismatch or Code::config, naming the region, for a codec that this build does not have;
  // Code::corrupt for blocks that cannot be those of the region.
  static Result<EncodedRegions> of(const format::ImageIndex& index);

  // Returns whether the region is stored in compressed blocks. The other functions are for such
  // regions only.
  bool holds(std::size_t region) const {
    return region < regions_.size() && regions_[region].has_value();
  }
  bool is_empty() const { return regions_.empty(); }

  // Returns the decoded bytes of a block, at most format::kBlockBytes. They begin at offset() in
  // the region.
  std::uint64_t length(std::size_t region, std::uint64_t block) const {
    return regions_[region]->plan.shape_of(block).bytes();
  }
  std::uint64_t offset(std::size_t region, std::uint64_t block) const {
    return regions_[region]->plan.offset_of(block);
  }

  // Holds what one thread needs to decode. It is kept between calls because its memory is used
  // again.
  struct Workspace {
    codec::BlockDecoder decoder;
    ByteVector stored;
  };

  // Fills `to`, which has the block's length. Code::corrupt if the stored bytes or the values have
  // not their checksums.
  Status decode(Workspace& workspace, const format::Region& described, std::size_t region,
                std::uint64_t block, ByteSource& image, MutableBytes to) const;

 private:
  struct Region {
    codec::BlockPlan plan;
    std::vector<std::uint64_t> begins;  // where each block begins in the image
  };

  std::vector<std::optional<Region>> regions_;  // by number; empty if none is compressed
};

}  // namespace diapause::store
