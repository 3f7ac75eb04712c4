// Captures this rank's image: finds room for it, copies the program's memory, and hands the image
// over to the host, in the background where possible.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "capture/capturer.hpp"
#include "engine/host/host.hpp"
#include "engine/job/context.hpp"
#include "engine/job/decision.hpp"
#include "engine/node/captures.hpp"
#include "library/background_task.hpp"
#include "sys/process.hpp"

namespace diapause::library {

// Says what a checkpoint captures.
struct Subject {
  capture::BlockSource& source;
  format::ImageIndex index;
  // Memory of the program that `source` reads, if it does.
  std::vector<capture::SourceRegion> memory;
  double called_s = sys::monotonic_s();  // time at which the program began to wait
  Status ready = {};                     // the reason why this rank has nothing to capture
  double waited_s = 0;                   // since then, for versions in flight to make room
};

// A capture that was handed over.
struct Taken {
  std::uint64_t request = 0;      // its number at the host
  std::uint64_t image_bytes = 0;  // bytes of this rank's image
  // Says why this rank has no image for the background; the request exists all the same.
  Status captured;
};

// All calls come from the program's thread. Any other code that posts jobs to the host must call
// wait() before.
class ImageCapture {
 public:
  // Opens the capture. All arguments must outlive the object.
  static std::unique_ptr<ImageCapture> open(const engine::Context& context, engine::Host& host,
                                            engine::LedgerWriter& ledger);
  ImageCapture(const ImageCapture&) = delete;
  ImageCapture& operator=(const ImageCapture&) = delete;
  ~ImageCapture() {
    end_preparation();
    drain_.wait();
  }

  // Prepares what take() will need for these regions and this level, as far as that is possible
  // without the other ranks: the layout of the image, and room for it. Returns whether it is there.
  // Comes while is_done(). Not collective.
  bool prepare(format::ImageIndex index, int level);
  // Gives it back. Not collective.
  void forget_prepared();

  // Captures the subject and hands it over. The subject's memory must stay until is_done(). Fails
  // only if nothing was handed over on any rank. If the decision says that all ranks are prepared,
  // the capture is of what was passed to prepare(), and the index of the subject is not used.
  // Collective.
  Result<Taken> take(Subject subject, const engine::Decision& decision);

  // Captures an image that was fetched, and not the program's memory; `source` reads it. The copy
  // is made in the background, which the host must have. After that, `handed_over` is called in
  // another thread. Collective.
  Result<Taken> take_behind(std::shared_ptr<capture::BlockSource> source, format::ImageIndex index,
                            const engine::Decision& decision, std::function<void()> handed_over);

  // Asks the host to put back the files of a version that are missing in that tier. Returns the
  // number of the request. Collective.
  std::uint64_t put_back(const format::Manifest& manifest, config::TierKind tier);

  // Prepares a slot in the background for the next capture of these regions, and releases the
  // memory of other slots. It is called while nothing is in flight, and the next capture completes
  // what is missing. Not collective.
  void keep_slot_ready(format::ImageIndex index);

  // Returns whether the last capture is complete, so that the program may free its memory.
  bool is_done() const { return drain_.is_done(); }
  void wait() { drain_.wait(); }
  bool wait(double at_most_s) { return drain_.wait(at_most_s); }

  // Writes the ledger's line on how the last capture was made, once it is complete.
  void report();

  // Returns whether there are devices that write to memory without the processor.
  bool are_devices_about() const { return are_devices_about_; }

 private:
  ImageCapture(const engine::Context& context, engine::Host& host, engine::LedgerWriter& ledger)
      : context_(context), host_(host), ledger_(ledger) {}
  // What a capture needs: the layout of the image, and room for it, unless it is not captured into
  // a slot.
  struct Prepared {
    engine::ImagePlan plan;
    config::TierKind tier = config::TierKind::memory;  // where `slot` lies
    std::optional<store::Slot> slot;
  };
  Result<Prepared> prepare_together(Subject& subject, engine::Captures& captures);
  void give_back(Prepared prepared) const;
  config::TierKind first_tier(const engine::Captures& captures) const;
  Result<store::Slot> acquire_slot(engine::Captures& captures, std::uint64_t bytes,
                                   store::SlotUse use);
  static Status copy(engine::Captures& captures, const engine::ImagePlan& plan,
                     capture::BlockSource& source);
  void end_preparation();
  Status begin(const Subject& subject, const engine::ImagePlan& plan, store::Slot slot,
               engine::Captures& captures);
  Status end(engine::Captures& captures);
  void capture_now(const Subject& subject, const engine::ImagePlan& plan, store::Slot slot,
                   engine::Captures& captures);
  bool goes_on_behind() const { return host_.is_background() && capturer_->has_bytes_left(); }
  std::uint64_t hand_over(engine::Captures captures);
  std::uint64_t complete(engine::Captures captures);

  const engine::Context& context_;
  engine::Host& host_;
  engine::LedgerWriter& ledger_;
  std::unique_ptr<capture::Capturer> capturer_;
  std::optional<Prepared> prepared_;
  // This is the tier, other than the best, that a message has reported.
  std::optional<config::TierKind> told_of_capture_in_;
  bool are_devices_about_ = false;
  std::uint64_t slot_contents_ = 0;              // numbers given to slots
  std::optional<format::VersionId> unreported_;  // version whose capture is not in the ledger yet
  BackgroundTask drain_;                         // task of the open capture
  std::atomic<bool> stops_preparing_ = false;
  // Prepares a slot for the next capture; never runs at the same time as drain_.
  BackgroundTask preparation_;
};

}  // namespace diapause::library
