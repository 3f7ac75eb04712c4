// What this process's memory is backed by.
#pragma once

#include <cstdint>
#include <string>
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

// A snapshot of /proc/self/maps.
class Mappings {
 public:
  static Result<Mappings> read();

  // Readable and writable besides: only there can nothing but a write by this process change a page.
  bool is_private_anonymous(PageRange range) const;

  // Where and why a load from that memory, or a store to it, would end the program; empty if none would. Names the
  // device that it belongs to where there is one, and GPUs where it may be theirs.
  std::string why_unreadable(ByteView memory) const;
  std::string why_unwritable(ByteView memory) const;

 private:
  enum class Right { read, write };
  struct Mapping {
    PageRange range;
    bool is_readable;
    bool is_writable;
    std::string device;  // its name, if it is one
  };
  std::string why_refused(ByteView memory, Right right) const;
  std::string hint() const;

  std::vector<Mapping> all_;                  // by address
  std::vector<PageRange> private_anonymous_;  // adjoining ones joined
};

// As far as the first and the last byte tell: takes two system calls, and more only where one of them fails.
std::string why_ends_are_unreadable(ByteView memory);

}  // namespace diapause::sys
