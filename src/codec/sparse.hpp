// Runs that are zero nearly everywhere, as the places and values of what is not: the high bytes of small numbers. To
// find these takes a tenth of the time of an entropy coder, which is left with one byte for each.
#pragma once

#include "base/bytes.hpp"

namespace diapause::codec {

// `gaps`: for each value that is not zero, how many zeros lie before it; 255 stands for so many zeros and no value.
struct Sparse {
  ByteVector gaps, values;
};

std::size_t count_nonzero(ByteView in);

void to_sparse(ByteView in, Sparse& sparse);

// Fills `out`. Whether that could be: false if a value would lie behind its end, or if there are more or fewer values
// than gaps below 255.
bool from_sparse(ByteView gaps, ByteView values, MutableBytes out);

}  // namespace diapause::codec
