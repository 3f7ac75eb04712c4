// An entropy coder for bytes that are best coded independently: asymmetric numeral systems (rANS)
// with one table for the run and eight interleaved states, so that a core works on eight bytes at a
// time.
//
// Coded data: the table (one byte in front, the number of values less one; then for each byte value
// that occurs, in ascending order, the value and its frequency out of 4096, in one byte below 128
// or in two bytes, the first of which is 128 + the low 7 bits), the eight final states (4 bytes
// each), then 16-bit words in the order in which the decoder needs them. All numbers are
// little-endian.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace diapause::codec {

using Histogram = std::array<std::uint32_t, 256>;
Histogram histogram_of(ByteView in);
// Returns the bytes that an ideal coder needs with these frequencies, without its table.
double entropy_bytes(const Histogram& histogram);

// Returns the number of bytes written to `out`, or 0 if `out` is too small. `in` has at least two
// different bytes and fewer than 2^20; `histogram` is that of `in`; `scratch` is memory for reuse.
std::size_t rans_encode(ByteView in, const Histogram& histogram, ByteVector& scratch,
                        MutableBytes out);

// Returns whether `coded` decodes to exactly out.size() bytes. The input may be anything; after a
// failure the content of `out` is undefined.
bool rans_decode(ByteView coded, MutableBytes out);

}  // namespace diapause::codec
