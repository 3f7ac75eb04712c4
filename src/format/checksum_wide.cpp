// The checksums once more, by instructions that not every x86-64 processor has: this file alone is
// built for AVX2. It includes no header of C++ that has code, because the linker could use that
// code for all others.
#include "format/checksum_wide.hpp"

#if defined(__AVX2__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace diapause::format {

unsigned long long wide_checksum64(const void* data, unsigned long bytes) {
  return XXH3_64bits(data, bytes);
}

void wide_update(void* state, const void* data, unsigned long bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

}  // namespace diapause::format
#endif
