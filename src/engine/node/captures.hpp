// One version on its way to the node engine, as every front end makes it:
//
//   Decider::decide()   the ranks agree on the version
//   begin_captures()    where its images are to lie
//   add_image()         an image out of whatever its data come from
//   give_up()           in its place, if there is none: the version fails on all ranks alike
//
// Then NodeEngine::checkpoint() or Host::submit() takes it, which all ranks must call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "capture/capture.hpp"
#include "engine/job/context.hpp"
#include "engine/job/decision.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// When the program was held up by a capture, sys::monotonic_s(); of one rank for its node.
struct CaptureTimes {
  double called_s = 0;
  double begun_s = 0;    // until then it has waited for others and for room
  double blocked_s = 0;  // from then on
  double drain_begun_s = 0;
  double drain_s = 0;  // of what was captured behind the call
  governor::Ratios ratios;
};

// The images of one version that the ranks acted for have captured.
struct Captures {
  Decision decision;
  config::TierKind node_tier = config::TierKind::memory;     // where the images are to be kept
  config::TierKind capture_tier = config::TierKind::memory;  // where they lie now
  std::vector<Image> images;                                 // by rank; not to be used if the capture failed here
  Status result;                                             // why
  // Level 4 without images in the node tier: written straight from where the data are. Empty: not possible.
  std::vector<std::unique_ptr<RawImageSource>> direct;
  bool is_direct = false;  // this is what is wanted
  double capture_s = 0;
  CaptureTimes times;                 // blocked_s: 0 in the call
  std::function<double()> blocked_s;  // for the bill, asked at the end
};

// The plan of one rank's image: where each region goes, and which version and rank it belongs to.
struct ImagePlan {
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  format::ImageHeader identity;

  std::uint64_t bytes() const { return capture::image_bytes(index, index_offset); }
};

// Code::argument if the regions cannot make an image.
Result<ImagePlan> plan_image(const Context& context, std::uint32_t incarnation, const Decision& decision,
                             format::ImageIndex index);

// The front end sets `capture_tier` to where it got its slots, if that is another tier than the first.
Captures begin_captures(const Context& context, const Decision& decision, double called_s);

// Copies all data of `source` into the slot as one image. `source` must live until the version was handed over and, if
// the slot is no memory, until it is done: the rest of the image's bytes come from there.
Status add_image(Captures& captures, const ImagePlan& plan, capture::BlockSource& source, store::Slot slot);

inline void give_up(Captures& captures, Error why) { captures.result = fail(std::move(why)); }

}  // namespace diapause::engine
