// Has memory that processes of one machine share. It has no name in any file system, so nothing of
// it is left when the processes end, however they end.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::sys {

class SharedMemory {
 public:
  // Another process of the machine opens the memory by its handle, which is plain bytes.
  struct Handle {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };

  // Makes so many bytes, all zeros.
  static Result<SharedMemory> create(std::uint64_t bytes);
  // Opens the memory that another process has created with as many bytes, while that process holds
  // its handle open. Fails if the handle leads to anything else, as it does where processes do not
  // see each other.
  static Result<SharedMemory> open(const Handle& handle, std::uint64_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Is valid until close_handle().
  Result<Handle> handle() const;
  // No other process can open the memory any more. It stays mapped.
  void close_handle();

  MutableBytes bytes() const { return bytes_; }

 private:
  explicit SharedMemory(int descriptor) : descriptor_(descriptor) {}
  Status map(std::uint64_t bytes);

  int descriptor_;  // -1: closed
  MutableBytes bytes_;
};

}  // namespace diapause::sys
