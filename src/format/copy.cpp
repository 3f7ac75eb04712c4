#include "format/copy.hpp"

#include "format/checksum.hpp"

namespace diapause::format {

std::uint64_t copy_with_checksum(MutableBytes to, ByteView from) {
  Checksum64 checksum;
  checksum.copy(to, from);
  return checksum.value();
}

}  // namespace diapause::format
