#include <fmt/core.h>
#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "sys/file.hpp"
#include "sys/large_pages.hpp"

namespace diapause::sys {

Result<AlignedBuffer> AlignedBuffer::allocate(std::uint64_t bytes) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  void* memory = nullptr;
  const bool is_large = bytes >= kLargePageBytes;
  if (::posix_memalign(&memory, is_large ? kLargePageBytes : kPageBytes, bytes) != 0) {
    return fail(Code::memory, fmt::format("no memory for a buffer of {} bytes", bytes));
  }
  if (is_large) (void)::madvise(memory, bytes / kLargePageBytes * kLargePageBytes, MADV_HUGEPAGE);
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = bytes;
  return buffer;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace diapause::sys
