// Gives the bytes of a checkpoint file. The bytes may lie in a mapped slot, in the program's memory
// or in a file.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual std::uint64_t size() const = 0;

  // Returns the `scratch.size()` bytes at `offset`. Bytes at and behind size() read as zeros. The
  // view is either of `scratch` or, without a copy, of memory that outlives this object and does
  // not change while the view is used.
  virtual Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) = 0;
};

}  // namespace diapause
