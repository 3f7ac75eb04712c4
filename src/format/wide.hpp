// What takes half the time on processors with AVX2: checksums of what lies in their cache, and the
// copy that computes them. The results are the same.
#pragma once

namespace diapause::format {

#if defined(__x86_64__)
// Returns whether this processor has AVX2. Otherwise the functions below must not be called.
bool has_wide();

unsigned long long wide_checksum64(const void* data, unsigned long bytes);
// `state` is an XXH3_state_t.
void wide_update(void* state, const void* data, unsigned long bytes);
void wide_copy(void* state, void* to, const void* from, unsigned long bytes);
#else
constexpr bool has_wide() { return false; }
inline unsigned long long wide_checksum64(const void*, unsigned long) { return 0; }
inline void wide_update(void*, const void*, unsigned long) {}
inline void wide_copy(void*, void*, const void*, unsigned long) {}
#endif

}  // namespace diapause::format
