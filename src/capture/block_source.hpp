// A source of the blocks of an image: the program's memory, or another image.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::capture {

class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // Copies `to.size()` bytes of region number `region`, beginning at `offset` in it, and returns
  // their format::checksum64.
  virtual Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) = 0;
  // Returns how many threads may call copy() at the same time.
  virtual unsigned threads() const { return 1; }
};

// A source for regions in memory, which must not change while the source is used.
class MemorySource : public BlockSource {
 public:
  explicit MemorySource(std::vector<const std::byte*> regions) : regions_(std::move(regions)) {}
  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override;

 private:
  std::vector<const std::byte*> regions_;
};

}  // namespace diapause::capture
