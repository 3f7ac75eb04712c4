// Files of NumPy: arrays with a head that says what they are. Pure. The format is NumPy's .npy, version 1.0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "format/image.hpp"

namespace diapause::cli {

// Elements of a type in row-major order.
struct ArrayShape {
  format::ElementType type = format::ElementType::bytes;
  std::uint64_t element_bytes = 1;
  std::vector<std::uint64_t> dims;  // in elements
};

// What stands before the elements; its length is a multiple of 64. Elements that are plain bytes get a last dimension.
std::string npy_head(const ArrayShape& shape);

// The shape of the global array that these pieces fill, each element once: they are of one type, lie inside of it, do
// not overlap and leave nothing out. Code::argument if they do not.
Result<ArrayShape> whole_of(const std::vector<const format::Region*>& pieces);

// Calls back for each run of bytes of the piece that is contiguous in the global array: where it begins in the array,
// where in the piece, and its length.
using TakeRun = std::function<Status(std::uint64_t in_array, std::uint64_t in_piece, std::uint64_t bytes)>;
Status for_each_run(const format::Region& piece, const TakeRun& take);

}  // namespace diapause::cli
