// An image on a disk, read past the page cache and far ahead of the checks. Whole pages are read
// straight to where they belong, if they belong at the start of a page, and everything else through
// small buffers, so that no memory is needed but these.
//
// Several threads share the work where the caller allows it: a disk is faster than one thread can
// touch fresh memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/image.hpp"
#include "sys/file.hpp"
#include "sys/private_memory.hpp"

namespace diapause::store {

// Takes a block that was checked: its region, where it begins in the region, and its bytes, which
// exist only during the call. Several threads call it at once.
using TakeBlock = std::function<Status(std::size_t region, std::uint64_t offset, ByteView bytes)>;

class DirectImage {
 public:
  // `file` holds the image from byte `begin` (the start of a page) on. It is opened for direct
  // access where the file system allows that. `name` is used in messages. All calls must give the
  // index of that image.
  DirectImage(sys::File file, std::uint64_t begin, std::string name)
      : file_(std::move(file)), begin_(begin), name_(std::move(name)) {}

  // Reads and checks every block in up to `threads` threads. Code::corrupt names the first damaged
  // block that was met.
  Status verify(const format::ImageIndex& index, unsigned threads) const;

  // Puts every region r with targets[r] not null there, and checks every block. After a failure
  // that memory holds nothing of worth.
  Status deliver(const format::ImageIndex& index, std::span<std::byte* const> targets,
                 unsigned threads) const;

  // Gives every block of the regions with is_wanted[r] to `take`, in up to `threads` threads. Stops
  // at the first failure that a thread meets.
  Status visit(const format::ImageIndex& index, const std::vector<bool>& is_wanted,
               unsigned threads, const TakeBlock& take) const;

  // A region as memory that is backed by the file. Nothing is read or checked.
  Result<sys::PrivateMemory> map(const format::Region& region) const {
    return sys::PrivateMemory::of_file(file_, begin_ + region.offset, region.stored_bytes);
  }

 private:
  sys::File file_;
  std::uint64_t begin_;
  std::string name_;
};

}  // namespace diapause::store
