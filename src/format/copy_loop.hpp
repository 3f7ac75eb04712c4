// The loop of Checksum64::copy(), which is compiled for the least processor and for AVX2 (see
// wide.cpp, which says what may not be included here).
#pragma once

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace diapause::format {
namespace {

// A tile that was read for its checksum is still in the first-level cache when it is copied. The
// next one is fetched meanwhile. Measured on 1 GiB with AVX2, tiles of 4 KiB take the time of a
// memcpy, where they took 1.3 times as much without that, and 1.5 times with SSE2.
constexpr unsigned long kTileBytes = 4096;
constexpr unsigned long kLineBytes = 64;
constexpr unsigned long kStreamFromBytes = 64ul * 1024;

#if defined(__SSE2__)
// Copies a line by stores that bypass the cache. `to` is a multiple of 16, or of 32 if it
// `is_wide`.
inline void stream_line(unsigned char* to, const unsigned char* from, bool is_wide) {
#if defined(__AVX2__)
  if (is_wide) {
    for (int i = 0; i < 2; ++i) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i,
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i));
    }
    return;
  }
#endif
  (void)is_wide;
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i,
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i));
  }
}

inline void stream_tile(unsigned char* to, const unsigned char* from, unsigned long length,
                        bool is_wide) {
  for (unsigned long i = 0; i < length; i += kLineBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i + kTileBytes), _MM_HINT_T0);
    stream_line(to + i, from + i, is_wide);
  }
}
#endif

// Beyond a few pages the stores bypass the cache: the copy will not be read soon, and a cached
// store would first read the line that it overwrites.
inline void copy_loop(XXH3_state_t* state, unsigned char* to, const unsigned char* from,
                      unsigned long bytes) {
  const auto place = reinterpret_cast<unsigned long>(to);
  const bool streams = place % 16 == 0 && bytes >= kStreamFromBytes;
  for (unsigned long done = 0; done < bytes; done += kTileBytes) {
    const unsigned long length = bytes - done < kTileBytes ? bytes - done : kTileBytes;
    XXH3_64bits_update(state, from + done, length);
#if defined(__SSE2__)
    if (streams && length % kLineBytes == 0) {
      stream_tile(to + done, from + done, length, place % 32 == 0);
      continue;
    }
#endif
    memcpy(to + done, from + done, length);
  }
#if defined(__SSE2__)
  // Streaming stores are weakly ordered; the fence makes them visible to whoever learns of this
  // copy.
  if (streams) _mm_sfence();
#endif
}

}  // namespace
}  // namespace diapause::format
