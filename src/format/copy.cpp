#include "format/copy.hpp"

#include "format/copy_loop.hpp"
#include "format/wide.hpp"

namespace diapause::format {

std::uint64_t copy_with_checksum(MutableBytes to, ByteView from) {
  if (has_wide()) return wide_copy(to.data(), from.data(), from.size());
  return copy_loop(reinterpret_cast<unsigned char*>(to.data()),
                   reinterpret_cast<const unsigned char*>(from.data()), from.size());
}

}  // namespace diapause::format
