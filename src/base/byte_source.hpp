// The bytes of a checkpoint file, wherever they are: in a mapped slot, still in the program's memory, in a file.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual std::uint64_t size() const = 0;

  // The `scratch.size()` bytes at `offset`; bytes at and behind size() are zeros. The view is of `scratch` or, without
  // a copy, of memory that lives as long as this object and is not changed meanwhile.
  virtual Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) = 0;
};

}  // namespace diapause
