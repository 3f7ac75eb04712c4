// This file alone is built for AVX2, which not every x86-64 processor has. It includes no header of
// C++ that has code, because the linker could use that code for all others.
#include "format/wide.hpp"

#if defined(__AVX2__)
#include "format/copy_loop.hpp"

namespace diapause::format {

unsigned long long wide_checksum64(const void* data, unsigned long bytes) {
  return XXH3_64bits(data, bytes);
}

void wide_update(void* state, const void* data, unsigned long bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

void wide_copy(void* state, void* to, const void* from, unsigned long bytes) {
  copy_loop(static_cast<XXH3_state_t*>(state), static_cast<unsigned char*>(to),
            static_cast<const unsigned char*>(from), bytes);
}

}  // namespace diapause::format
#endif
