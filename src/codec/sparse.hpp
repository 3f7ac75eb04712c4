// Runs that are nearly all zero, as the places and values of the other bytes: the high bytes of
// small numbers. Finding them takes a tenth of the time of an entropy coder, which then has one
// byte each to code.
#pragma once

#include "base/bytes.hpp"

namespace diapause::codec {

// `gaps` holds, for each value that is not zero, the number of zeros before it; 255 stands for so
// many zeros without a value.
struct Sparse {
  ByteVector gaps, values;
};

std::size_t count_nonzero(ByteView in);

void to_sparse(ByteView in, Sparse& sparse);

// Fills `out`. Returns false if a value would lie behind its end, or if the number of values
// differs from the number of gaps below 255.
bool from_sparse(ByteView gaps, ByteView values, MutableBytes out);

}  // namespace diapause::codec
