#include "capture/block_source.hpp"

#include "format/copy.hpp"

namespace diapause::capture {

Result<std::uint64_t> MemorySource::copy(std::size_t region, std::uint64_t offset,
                                         MutableBytes to) {
  return format::copy_with_checksum(to, ByteView(regions_[region] + offset, to.size()));
}

}  // namespace diapause::capture
