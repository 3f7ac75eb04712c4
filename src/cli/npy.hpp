// NumPy files: arrays with a header that describes them. The functions are pure. The format is
// NumPy's .npy, version 1.0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "format/image.hpp"

namespace diapause::cli {

// The type and dimensions of an array in row-major order.
struct ArrayShape {
  format::ElementType type = format::ElementType::bytes;
  std::uint64_t element_bytes = 1;
  std::vector<std::uint64_t> dims;  // numbers of elements
};

// Returns the header in front of the elements; its length is a multiple of 64. Elements of plain
// bytes get an additional last dimension.
std::string npy_head(const ArrayShape& shape);

// Returns the shape of the global array that these pieces fill completely. The pieces must have the
// same type, lie inside the array, not overlap, and leave nothing out, or the result is
// Code::argument.
Result<ArrayShape> whole_of(const std::vector<const format::Region*>& pieces);

// Called for each run of bytes of the piece that is contiguous in the global array, with the run's
// offset in the array, its offset in the piece, and its length.
using TakeRun =
    std::function<Status(std::uint64_t in_array, std::uint64_t in_piece, std::uint64_t bytes)>;
Status for_each_run(const format::Region& piece, const TakeRun& take);

}  // namespace diapause::cli
