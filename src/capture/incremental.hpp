// Only what has changed since the slot was filled last. The image is complete all the same: the other blocks lie in the
// slot already, and their checksums are carried over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture_job.hpp"
#include "sys/page_scan.hpp"
#include "sys/thread_pool.hpp"
#include "sys/userfault.hpp"

namespace diapause::capture {

class Incremental {
 public:
  // `audit_part` (0..1) of the blocks that seem unchanged are compared with their checksums in each capture.
  Incremental(sys::ThreadPool& pool, double audit_part) : pool_(pool), audit_part_(audit_part) {}
  Incremental(const Incremental&) = delete;
  Incremental& operator=(const Incremental&) = delete;
  ~Incremental();

  // Why changes cannot be tracked by the kernel; empty if they can.
  const std::string& refusal();
  // For good, because of what it says.
  void refuse(const std::string& reason);

  // What a capture of a region found.
  struct Finding {
    bool missed_change = false;  // a block changed and tracking does not know: nothing that was tracked can be trusted
    std::uint64_t damaged_blocks = 0;  // of the slot, mended
    double scan_s = 0;
  };

  // Copies what tracking says has changed. `capture` is the number of this capture.
  Result<Finding> take_tracked(CaptureJob& job, std::uint64_t capture);
  // Compares everything with its checksum and copies what differs.
  Finding take_by_checksum(CaptureJob& job);
  // Looks at a sample of a region that should not have changed at all; copies nothing but to mend the slot.
  Finding take_unchanged(CaptureJob& job);

  // Takes the hands off all regions but these.
  void keep_only(const std::vector<std::string>& regions);

 private:
  struct Tracked {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    sys::PageRange pages;
    std::vector<std::uint64_t> changed_in;  // by block: the last capture that found it changed
  };

  Result<Tracked*> track(const CaptureJob& job, std::uint64_t capture);
  Result<Tracked*> note_changes(const CaptureJob& job, std::uint64_t capture);
  Finding audit(CaptureJob& job, const std::vector<std::uint64_t>& unchanged);

  sys::ThreadPool& pool_;
  const double audit_part_;
  std::optional<Result<sys::Userfault>> userfault_;
  std::optional<Result<sys::PageScan>> scan_;
  std::string refusal_;
  std::map<std::string, Tracked> tracked_;
  std::map<std::string, std::uint64_t> audited_;  // blocks of a region looked at so far: the sample moves on
};

}  // namespace diapause::capture
