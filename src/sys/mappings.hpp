// Reads the mappings of this process's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::sys {

// This is a range of whole pages of this process's memory.
struct PageRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
  bool is_empty() const { return begin == end; }
  bool operator==(const PageRange&) const = default;
};

std::uint64_t page_bytes();

// Returns the pages that lie completely in `memory`; the range is empty if there is none.
PageRange whole_pages_in(ByteView memory);

// Returns the pages that hold any of `memory`.
PageRange pages_of(ByteView memory);

// Returns whether all these pages can be read, and brings them in where they are not there. False
// means that only Mappings can tell. This costs some nanoseconds for each page, where
// Mappings::read() costs about a microsecond for each mapping of the process.
bool are_surely_readable(PageRange pages);
// Does the same for writing. What the pages hold does not change.
bool are_surely_writable(PageRange pages);

// This is a snapshot of /proc/self/maps.
class Mappings {
 public:
  static Result<Mappings> read();

  // Returns whether the range is private, anonymous, readable and writable. Only in such memory can
  // nothing but a write by this process change a page.
  bool is_private_anonymous(PageRange range) const;

  // Returns where and why a load from that memory, or a store to it, would crash the program; empty
  // if none would. Names the device that the memory belongs to, and GPUs where it may belong to
  // one.
  std::string why_unreadable(ByteView memory) const;
  std::string why_unwritable(ByteView memory) const;

 private:
  enum class Right { read, write };
  struct Mapping {
    PageRange range;
    bool is_readable;
    bool is_writable;
    bool is_file;
    std::string device;  // the name of the device, if the mapping is one
  };
  std::string why_refused(ByteView memory, Right right) const;
  std::string hint() const;

  std::vector<Mapping> all_;                  // by address
  std::vector<PageRange> private_anonymous_;  // adjoining ranges are joined
};

// Checks the first and the last byte only, with two system calls, and more only if one of them
// fails. Returns why the memory is unreadable, or an empty text.
std::string why_ends_are_unreadable(ByteView memory);

}  // namespace diapause::sys
