// Checksums for processors with AVX2, which check what lies in their cache twice as fast. The
// values are the same. checksum.cpp chooses.
#pragma once

namespace diapause::format {

unsigned long long wide_checksum64(const void* data, unsigned long bytes);
// `state` is an XXH3_state_t.
void wide_update(void* state, const void* data, unsigned long bytes);

}  // namespace diapause::format
