// One region in one capture, as the capture methods see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "format/copy.hpp"
#include "format/image.hpp"
#include "policy/capture_choice.hpp"

namespace diapause::capture {

// The program's declaration about its writes to a region.
enum class Declaration {
  changing,  // the program promises nothing
  stable,    // the program does not write to it until drain() has returned
  // The program never writes to it again. It may free or replace it once it is no longer protected.
  constant
};

struct SourceRegion {
  const std::byte* data = nullptr;  // stored_bytes of the region with the same number
  Declaration declaration = Declaration::changing;
  // A writer that page protection does not stop may write to it: a network adapter, a GPU, a buffer
  // registered with io_uring.
  bool may_be_written_by_devices = false;
};

struct RegionReport {
  std::string region;
  policy::CaptureMethod method = policy::CaptureMethod::copy;
  std::string reason;
  std::uint64_t copied_in_begin = 0;  // in bytes
  std::uint64_t copied_in_drain = 0;
  std::uint64_t faults = 0;  // writes of the program that had to wait
  double blocked_s = 0;      // in begin()
  // Fraction of the blocks that differ from the former content of the slot.
  std::optional<double> changed;
};

// The content of a slot for a region, and the memory that it came from.
struct SlotRegion {
  std::string name;
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // place in the slot
  std::size_t first_checksum = 0;
};

struct SlotContent {
  std::uint64_t capture = 0;  // number of the capture that filled it; 0: the content is unknown
  std::vector<SlotRegion> regions;
  std::vector<std::uint64_t> checksums;  // checksums of the blocks of all regions
};

// What is known about a region from earlier captures.
struct RegionHistory {
  policy::CaptureMethod method = policy::CaptureMethod::copy;
  std::optional<double> changed;
};

enum class CopyMode {
  copy,
  copy_on_write,
  track,       // copy the blocks that the kernel reports as written
  compare,     // copy the blocks that differ from their checksums
  background,  // copy in drain(), without protection
  carry        // copy nothing
};

struct RegionCapture {
  const SourceRegion* source = nullptr;
  format::Region* description = nullptr;  // block_checksums are filled in
  MutableBytes to;
  // Old checksums; null: the slot does not hold this region at this place.
  const std::uint64_t* old = nullptr;
  std::uint64_t old_capture = 0;
  RegionHistory* history = nullptr;
  RegionReport* report = nullptr;
  CopyMode mode = CopyMode::copy;

  ByteView memory() const { return {source->data, description->stored_bytes}; }
  std::uint64_t blocks() const { return description->block_count(); }
  ByteView block(std::uint64_t number) const {
    const std::uint64_t offset = number * format::kBlockBytes;
    return memory().subspan(offset,
                            std::min<std::uint64_t>(format::kBlockBytes, memory().size() - offset));
  }
  MutableBytes block_in_slot(std::uint64_t number) const {
    return to.subspan(number * format::kBlockBytes, block(number).size());
  }
  void copy_block(std::uint64_t number) {
    description->block_checksums[number] =
        format::copy_with_checksum(block_in_slot(number), block(number));
  }
};

}  // namespace diapause::capture
