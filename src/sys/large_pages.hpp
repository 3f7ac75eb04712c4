// Large pages (2 MiB) of files that lie in memory. A file of them is made five times as fast as one
// of small pages, and copied and read faster.
#pragma once

#include <cstddef>
#include <cstdint>

namespace diapause::sys {

inline constexpr std::uint64_t kLargePageBytes = 2 * 1024 * 1024;

// Backs by large pages what it can of [begin, end) of a file in a tmpfs that is at least `end`
// bytes long. Where nothing was written, the file reads as zeros, as before. Does what can be done
// at once: nothing where the kernel has no such pages to give (Linux before 6.1, memory that is
// fragmented) or the file lies elsewhere.
void back_by_large_pages(int fd, std::uint64_t begin, std::uint64_t end);

// Maps [0, length) of a file shared, readable, writable and populated, where its large pages can be
// mapped as such. Returns nullptr with *error = errno on failure. munmap() of `length` bytes
// removes all of it.
std::byte* map_for_large_pages(int fd, std::uint64_t length, int* error);

// Maps [offset, offset + length) of a file private, readable and writable, in the same way. Nothing
// is read, and no memory is set aside for copies of the pages that are written to.
std::byte* map_private_for_large_pages(int fd, std::uint64_t offset, std::uint64_t length,
                                       int* error);

}  // namespace diapause::sys
