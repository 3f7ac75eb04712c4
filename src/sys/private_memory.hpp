// Memory of this process alone, page-aligned: a private mapping of a part of a file, or anonymous memory.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class PrivateMemory {
 public:
  // `bytes` (> 0) of the file from `offset`, a multiple of 4096, on. Pages are read when they are first touched; writes
  // stay here. The file may be closed, renamed and removed, but whoever writes to it or cuts it changes what is here. A
  // page that the file system fails to read then ends the process with SIGBUS.
  static Result<PrivateMemory> of_file(const File& file, std::uint64_t offset, std::uint64_t bytes);
  static Result<PrivateMemory> anonymous(std::uint64_t bytes);  // content undefined

  PrivateMemory(PrivateMemory&& other) noexcept;
  PrivateMemory& operator=(PrivateMemory&&) = delete;
  ~PrivateMemory();

  MutableBytes bytes() const { return bytes_; }

 private:
  PrivateMemory() = default;

  Kernel* kernel_ = nullptr;
  std::byte* mapping_ = nullptr;
  std::uint64_t mapping_bytes_ = 0;
  AlignedBuffer buffer_;
  MutableBytes bytes_;
};

}  // namespace diapause::sys
