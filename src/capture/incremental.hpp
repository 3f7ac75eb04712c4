// Copies only the blocks that have changed since the slot was last filled. The image is complete
// all the same: the other blocks are already in the slot, and their checksums are carried over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/region_capture.hpp"
#include "sys/page_scan.hpp"
#include "sys/thread_pool.hpp"
#include "sys/userfault.hpp"

namespace diapause::capture {

class Incremental {
 public:
  // A fraction `audit_part` (0..1) of the blocks found unchanged is compared with the checksums in
  // each capture.
  Incremental(sys::ThreadPool& pool, double audit_part) : pool_(pool), audit_part_(audit_part) {}
  Incremental(const Incremental&) = delete;
  Incremental& operator=(const Incremental&) = delete;
  ~Incremental();

  // Returns why the kernel cannot track changes; empty if it can.
  const std::string& refusal();
  // Gives up tracking for good, for the given reason.
  void refuse(const std::string& reason);

  // The result of capturing a region.
  struct Finding {
    // A block changed without tracking noticing: no result of tracking can be trusted.
    bool missed_change = false;
    // Blocks of the slot that were damaged and have been repaired.
    std::uint64_t damaged_blocks = 0;
    double scan_s = 0;
  };

  // Copies the blocks that tracking reports as changed. `capture` is the number of this capture.
  Result<Finding> take_tracked(RegionCapture& region, std::uint64_t capture);
  // Compares all blocks with their checksums and copies those that differ.
  Finding take_by_checksum(RegionCapture& region);
  // Verifies a sample of a region that should not have changed at all. Copies only to repair the
  // slot.
  Finding take_unchanged(RegionCapture& region);

  // Stops tracking all regions except these.
  void keep_only(const std::vector<std::string>& regions);

 private:
  struct Tracked {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    sys::PageRange pages;
    // For each block, the last capture that found it changed.
    std::vector<std::uint64_t> changed_in;
  };

  Result<Tracked*> track(const RegionCapture& region, std::uint64_t capture);
  Result<Tracked*> note_changes(const RegionCapture& region, std::uint64_t capture);
  Finding audit(RegionCapture& region, const std::vector<std::uint64_t>& unchanged);

  sys::ThreadPool& pool_;
  const double audit_part_;
  std::optional<Result<sys::Userfault>> userfault_;
  std::optional<Result<sys::PageScan>> scan_;
  std::string refusal_;
  std::map<std::string, Tracked> tracked_;
  // Blocks of each region that were verified so far; the sample moves on.
  std::map<std::string, std::uint64_t> audited_;
};

}  // namespace diapause::capture
