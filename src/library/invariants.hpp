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

// Permits the values of a region to be changed by at most the bound of the method. Code::argument
// for bounds and types that no codec takes; Code::config for a codec that this build does not have.
Status allow_loss(RegionTable& regions, const std::string& name, const codec::Method& method);

struct Invariant {
  std::vector<std::string> regions;  // for which loss is allowed
  // Gets the values of the regions in their order.
  std::function<bool(std::span<const ByteView>)> holds;
};

class Invariants {
 public:
  // Adds an invariant. Code::not_found for a region that is not protected.
  Status add(RegionTable& regions, Invariant invariant);

  bool is_empty() const { return all_.empty(); }

  // Evaluates all invariants on the values that a version with this index would restore. If one
  // does not hold, its regions lose their permission in `index`. They lose it on all ranks alike,
  // because all ranks must store a decomposed field in the same way. Collective.
  Status apply(const engine::Context& context, RegionTable& regions,
               format::ImageIndex& index) const;

 private:
  std::vector<Invariant> all_;
};

}  // namespace diapause::library
