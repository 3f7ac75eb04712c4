#include "store/encoded_regions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/checksum.hpp"

namespace diapause::store {
namespace {

// Fails if there is no decoder for the region. The headers of its blocks are checked when they are
// decoded.
Status check_codec(const format::Region& region) {
  const auto codec = codec::make_codec(static_cast<codec::CodecId>(region.compression.codec));
  if (codec) return {};
  return fail(codec.error().code,
              fmt::format("region '{}': {}", region.name, codec.error().message));
}

}  // namespace

Result<EncodedRegions> EncodedRegions::of(const format::ImageIndex& index) {
  EncodedRegions encoded;
  if (std::ranges::all_of(index.regions, &format::Region::is_raw)) return encoded;
  for (const format::Region& region : index.regions) {
    encoded.regions_.emplace_back();
    if (region.is_raw()) continue;
    DIAPAUSE_TRY(check_codec(region));
    Region known{codec::BlockPlan(region, format::kBlockBytes), {}};
    bool is_sound = known.plan.block_count() == region.block_count();
    std::uint64_t begin = region.offset;
    for (std::uint64_t block = 0; is_sound && block < region.block_count(); ++block) {
      const std::uint64_t size = region.encoded.sizes[block];
      is_sound = size <= known.plan.shape_of(block).bytes() + codec::kBlockHeaderBytes;
      known.begins.push_back(begin);
      begin += size;
    }
    if (!is_sound) {
      return fail(Code::corrupt,
                  fmt::format("region '{}': its compressed blocks are not those of {} elements",
                              region.name, region.count));
    }
    encoded.regions_.back() = std::move(known);
  }
  return encoded;
}

Status EncodedRegions::decode(Workspace& workspace, const format::Region& described,
                              std::size_t region, std::uint64_t block, ByteSource& image,
                              MutableBytes to) const {
  const std::uint64_t size = described.encoded.sizes[block];
  workspace.stored.resize(std::max<std::size_t>(workspace.stored.size(), size));
  DIAPAUSE_TRY_ASSIGN(
      const ByteView stored,
      image.view(regions_[region]->begins[block], MutableBytes(workspace.stored).first(size)));
  if (format::checksum64(stored) != described.block_checksums[block]) {
    return fail(Code::corrupt,
                fmt::format("block {} of region '{}' is damaged", block, described.name));
  }
  Status decoded = workspace.decoder.decode(stored, regions_[region]->plan.shape_of(block), to);
  if (decoded) return {};
  return fail(decoded.error().code, fmt::format("block {} of region '{}': {}", block,
                                                described.name, decoded.error().message));
}

}  // namespace diapause::store
