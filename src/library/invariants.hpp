// The invariants of the program: conditions that values must meet after a codec has changed them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/codec.hpp"
#include "engine/job/context.hpp"
#include "format/image.hpp"
#include "library/region_table.hpp"

namespace diapause::library {

// Lets the values of a region be changed by at most the bound of the method. Code::argument for bounds and types that
// no codec takes; Code::config for a codec that this build does not have.
Status allow_loss(RegionTable& regions, const std::string& name, const codec::Method& method);

struct Invariant {
  std::vector<std::string> regions;  // for which loss is allowed
  // Gets the values of the regions in their order.
  std::function<bool(std::span<const ByteView>)> holds;
};

class Invariants {
 public:
  // Code::not_found for a region that is not protected.
  Status add(RegionTable& regions, Invariant invariant);

  // Asks all invariants about the values that would come back from a version with this index. Where one would not hold,
  // its regions lose their permission in `index`, on all ranks alike, because of a decomposed field all ranks store the
  // same. Collective.
  Status apply(engine::Context& context, RegionTable& regions, format::ImageIndex& index) const;

 private:
  std::vector<Invariant> all_;
};

}  // namespace diapause::library
