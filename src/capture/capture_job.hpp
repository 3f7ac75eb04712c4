// One region in one capture, as the capture methods see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "capture/copy.hpp"
#include "format/image.hpp"
#include "policy/capture_choice.hpp"

namespace diapause::capture {

// What the program promises of a region.
enum class Declaration {
  changing,  // nothing
  stable,    // not written until drain() has returned
  constant   // never written again; the program may free or replace it when it is no longer protected
};

struct SourceRegion {
  const std::byte* data = nullptr;  // stored_bytes of the region with the same number
  Declaration declaration = Declaration::changing;
  // Written by something that page protection does not stop: a network adapter, a GPU, a buffer registered with
  // io_uring.
  bool may_be_written_by_devices = false;
};

struct RegionReport {
  std::string region;
  policy::CaptureMethod method = policy::CaptureMethod::copy;
  std::string reason;
  std::uint64_t copied_in_begin = 0;  // bytes
  std::uint64_t copied_in_drain = 0;
  std::uint64_t faults = 0;       // writes of the program that had to wait
  double blocked_s = 0;           // in begin()
  std::optional<double> changed;  // part of the blocks that differ from what the slot held before
};

// What a slot holds of a region, and the memory it came from.
struct SlotRegion {
  std::string name;
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // in the slot
  std::size_t first_checksum = 0;
};

struct SlotContent {
  std::uint64_t capture = 0;  // number of the capture that filled it; 0: nothing is known
  std::vector<SlotRegion> regions;
  std::vector<std::uint64_t> checksums;  // of the blocks of all regions
};

// What earlier captures found of a region.
struct RegionHistory {
  policy::CaptureMethod method = policy::CaptureMethod::copy;
  std::optional<double> changed;
};

enum class Way {
  copy,
  copy_on_write,
  track,       // copy what the kernel says was written
  compare,     // copy what differs from its checksum
  background,  // copy in drain(), unprotected
  carry        // nothing to copy
};

struct CaptureJob {
  const SourceRegion* source = nullptr;
  format::Region* region = nullptr;  // block_checksums are filled in
  MutableBytes to;
  const std::uint64_t* old = nullptr;  // checksums; null: the slot does not hold this region at this place
  std::uint64_t old_capture = 0;
  RegionHistory* history = nullptr;
  RegionReport* report = nullptr;
  Way way = Way::copy;

  ByteView memory() const { return {source->data, region->stored_bytes}; }
  std::uint64_t blocks() const { return region->block_count(); }
  ByteView block(std::uint64_t number) const {
    const std::uint64_t offset = number * format::kBlockBytes;
    return memory().subspan(offset, std::min<std::uint64_t>(format::kBlockBytes, memory().size() - offset));
  }
  MutableBytes block_in_slot(std::uint64_t number) const {
    return to.subspan(number * format::kBlockBytes, block(number).size());
  }
  void copy_block(std::uint64_t number) {
    region->block_checksums[number] = copy_with_checksum(block_in_slot(number), block(number));
  }
};

}  // namespace diapause::capture
