// Has page-aligned memory of this process alone: a private mapping of a part of a file, or
// anonymous memory.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class PrivateMemory {
 public:
  // Maps `bytes` (above 0) of the file from `offset`, a multiple of 4096. Pages are read when they
  // are first touched, and writes stay in this process. The file may be closed, renamed and
  // removed, but writing to it or truncating it changes the mapping. If the file system then fails
  // to read a page, the process ends with SIGBUS.
  static Result<PrivateMemory> of_file(const File& file, std::uint64_t offset, std::uint64_t bytes);
  static Result<PrivateMemory> anonymous(std::uint64_t bytes);  // content undefined

  PrivateMemory(PrivateMemory&& other) noexcept;
  PrivateMemory& operator=(PrivateMemory&&) = delete;
  ~PrivateMemory();

  MutableBytes bytes() const { return bytes_; }

  // Reads [offset, offset + length) of a part of a file now. Returns Code::io where the file system
  // cannot, or where the file is shorter by now: whoever touched that memory would end.
  Status populate(std::uint64_t offset, std::uint64_t length) const;

 private:
  PrivateMemory() = default;

  Kernel* kernel_ = nullptr;
  std::byte* mapping_ = nullptr;
  std::uint64_t mapping_bytes_ = 0;
  AlignedBuffer buffer_;
  MutableBytes bytes_;
};

}  // namespace diapause::sys
