// What this process's memory is backed by.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::sys {

// Whole pages of this process's memory.
struct PageRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
  bool is_empty() const { return begin == end; }
  bool operator==(const PageRange&) const = default;
};

std::uint64_t page_bytes();

// The pages that lie in `memory` from their first to their last byte; empty if there is none.
PageRange whole_pages_in(ByteView memory);

// A snapshot of /proc/self/maps, reduced to memory that is private, anonymous, readable and writable: only there can
// nothing but a write by this process change a page.
class Mappings {
 public:
  static Result<Mappings> read();
  bool is_private_anonymous(PageRange range) const;

 private:
  std::vector<PageRange> private_anonymous_;  // by address, adjoining ones joined
};

}  // namespace diapause::sys
