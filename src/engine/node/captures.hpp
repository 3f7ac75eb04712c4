// The sequence by which every front end passes a version to the node engine:
//
//   Decider::decide()   the ranks agree on the version
//   begin_captures()    decides where its images are to lie
//   add_image()         makes an image from any source of data
//   give_up()           instead, if there is no image: the version fails on all ranks alike
//
// Then NodeEngine::checkpoint() or Host::submit(), which all ranks must call, takes the version
// over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "capture/capture.hpp"
#include "engine/job/context.hpp"
#include "engine/job/decision.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Tells when a capture blocked the program, in seconds of sys::monotonic_s(). One rank tells it for
// its node.
struct CaptureTimes {
  double called_s = 0;
  double begun_s = 0;    // before this, the capture waited for other ranks and for room
  double waited_s = 0;   // of that, for versions in flight to make room
  double blocked_s = 0;  // seconds for which the program was blocked from begun_s on
  double drain_begun_s = 0;
  double drain_s = 0;  // seconds for which data were copied behind the call
  governor::Ratios ratios;
};

// The images of one version that were captured for the ranks that this process acts for.
struct Captures {
  Decision decision;
  // The tier in which the images are to be kept.
  config::TierKind node_tier = config::TierKind::memory;
  config::TierKind capture_tier = config::TierKind::memory;  // the tier in which the images lie now
  std::vector<Image> images;  // by rank; they must not be used if the capture failed here
  Status result;              // the reason for which the capture failed, if it did
  // The sources for level 4 without images in the node tier: the data are written directly from
  // where they are. It is empty if that is impossible.
  std::vector<std::unique_ptr<RawImageSource>> direct;
  bool is_direct = false;  // direct writing is wanted
  // If set, no new version is made: files of this one are missing. `images` is empty then.
  std::optional<format::VersionId> completes;
  double capture_s = 0;
  CaptureTimes times;         // blocked_s is 0 during the call
  std::vector<Phase> before;  // what held the program up before times.called_s
  // What the program does during the levels, where the process that makes them is not another one.
  energy::Beside levels_beside = energy::Beside::nothing;
  std::function<double()> blocked_s;  // since times.begun_s; for the ledger, called at the end
};

// The plan of one rank's image: the place of each region, and the version and rank of the image.
struct ImagePlan {
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  format::ImageHeader identity;

  std::uint64_t bytes() const { return capture::image_bytes(index, index_offset); }
};

// Returns the layout of an image of no version yet, and Code::argument if the regions cannot form
// an image.
Result<ImagePlan> lay_out_image(format::ImageIndex index);
// Makes it the plan of this rank's image in a version.
void assign(ImagePlan& plan, const Context& context, std::uint32_t incarnation,
            const Decision& decision);
// Does both.
Result<ImagePlan> plan_image(const Context& context, std::uint32_t incarnation,
                             const Decision& decision, format::ImageIndex index);

// Begins the captures of a version. The front end changes `capture_tier` if it got its slots from
// another tier.
Captures begin_captures(const Context& context, const Decision& decision, double called_s);

// Finds a slot for an image in the first tier that has room: `first`, then the one where the image
// is to lie, then the global tier at level 4 if it `may_be_global`. An image that should lie in
// memory, and finds no room there, lies on the node's disk. `told_of` is the tier other than
// `first` that the user was last told of.
struct SlotSearch {
  config::TierKind first;
  bool may_be_global;
  std::optional<config::TierKind>& told_of;
};
Result<store::Slot> find_slot(const Context& context, Captures& captures, SlotSearch search,
                              const std::function<Result<store::Slot>(config::TierKind)>& acquire);

// Copies all data of `source` into the slot as one image. `source` must live until the version has
// been handed over. If the slot is not in memory, `source` must live until the version is done,
// because the rest of the image's bytes is read from it.
Status add_image(Captures& captures, const ImagePlan& plan, capture::BlockSource& source,
                 store::Slot slot);

inline void give_up(Captures& captures, Error why) { captures.result = fail(std::move(why)); }

}  // namespace diapause::engine
