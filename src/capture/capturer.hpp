// Copies one rank's memory into an image in a slot, blocking the program as briefly as possible.
//
//   begin()  in the program's thread; when it returns, the program may write again
//   drain()  in one background thread, or again in the program's; when it returns, the image is
//   complete
//
// How each region is copied is configured, or chosen by policy/capture_choice.hpp from what earlier
// captures measured. The image holds the memory as it was when begin() was called, whatever the
// program writes afterwards.
//
// Protected memory must stay mapped until drain() or abandon() has returned: it must not be freed,
// moved, or given back with madvise. A forked child may do all this, but must not use its copy of
// this object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.hpp"
#include "capture/capture.hpp"
#include "capture/capture_plan.hpp"
#include "capture/region_capture.hpp"
#include "config/settings.hpp"
#include "policy/capture_choice.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::capture {

class CopyOnWrite;
class Incremental;

struct CapturerOptions {
  config::CaptureSettings settings;
  unsigned cores = 1;  // that this rank may keep busy
  DrainHost drain_host = DrainHost::own_thread;
  LogSink log;  // called in begin() only
};

struct CaptureRequest {
  std::vector<SourceRegion> regions;  // as many as index.regions, in the same order
  format::ImageIndex index;           // laid out by format::lay_out
  std::uint64_t index_offset = 0;     // the result of lay_out()
  format::ImageHeader identity;       // the same as for capture_to_mapping()
  MutableBytes to;  // the slot: page-aligned, with at least image_bytes(index, index_offset) bytes
  // A repeated id promises that `to` still holds what was last captured into it. 0: unknown.
  std::uint64_t slot_id = 0;
};

// Returns how many threads copy what a rank waits for: one for each of its cores unless configured.
unsigned copying_threads(const config::CaptureSettings& settings, unsigned cores);

class Capturer {
 public:
  explicit Capturer(CapturerOptions options);
  Capturer(const Capturer&) = delete;
  Capturer& operator=(const Capturer&) = delete;
  // Abandons an open capture.
  ~Capturer();

  // Begins a capture. No thread of the program may write to the memory during the call. Fails with
  // Code::internal if a capture is open, or if the parts of the request do not match; no capture is
  // open then.
  Status begin(CaptureRequest request);

  // Returns whether drain() has memory of the program to copy. If not, drain() takes no time.
  bool has_bytes_left() const;

  // Completes the image in the slot, with the header last, and ends the capture, also on failure.
  // The memory is unprotected then. Called in one thread at a time; does not log.
  Result<Captured> drain();

  // Ends an open capture without an image. The content of the slot is unknown then. It is called
  // instead of drain(), never during it.
  void abandon();

  // Returns how the regions of the last capture were copied; complete after drain().
  const std::vector<RegionReport>& report() const { return report_; }

 private:
  void prepare_regions();
  void begin_regions();
  bool begin_incremental(RegionCapture& region);
  void begin_region(RegionCapture& region);
  void copy_small_regions();
  void copy_now(RegionCapture& region, std::string reason);
  Status drain_region(RegionCapture& region);
  Status drain_regions();
  void remember();
  SlotContent content_now(SlotContent content) const;
  void end();
  void warn(const std::string& message) const;

  const CapturerOptions options_;
  std::unique_ptr<sys::ThreadPool> pool_;
  std::unique_ptr<CopyOnWrite> copy_on_write_;
  std::unique_ptr<Incremental> incremental_;

  std::optional<CaptureRequest> open_;
  std::vector<RegionCapture> regions_;  // one for each region of the open capture
  std::vector<RegionReport> report_;
  std::uint64_t capture_ = 0;  // counts begin()

  std::map<std::uint64_t, SlotContent> slots_;
  SlotContent old_;  // former content of the slot of the open capture
  std::unordered_map<std::string, RegionHistory> history_;  // by the name of the region
  policy::CaptureCosts costs_;
};

}  // namespace diapause::capture
