// An entropy coder for bytes that are best coded each for itself: asymmetric numeral systems with one table for the run
// and eight interleaved states, so that a core works on eight bytes at a time.
//
// Coded: the table (for each byte value that occurs, in rising order: the value, then its frequency of 4096 in one byte
// below 128 or two, the first of them 128 + the low 7 bits; in front one byte, how many values less one), the eight
// final states (4 bytes each), then 16-bit words as the decoder wants them. All little-endian.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace diapause::codec {

using Histogram = std::array<std::uint32_t, 256>;
Histogram histogram_of(ByteView in);
// Bytes that an ideal coder takes with these frequencies, without its table.
double entropy_bytes(const Histogram& histogram);

// Bytes written to `out`, 0 if there would be more than it has. `in` has at least two different bytes and fewer than
// 2^20; `histogram` is that of `in`; `scratch` is kept for the next call.
std::size_t rans_encode(ByteView in, const Histogram& histogram, ByteVector& scratch, MutableBytes out);

// Whether `coded` gives exactly out.size() bytes. Any input will do; if not, `out` holds anything.
bool rans_decode(ByteView coded, MutableBytes out);

}  // namespace diapause::codec
