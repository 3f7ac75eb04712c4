// What the program allows to be changed on the way to the global tier, and what must hold of it nevertheless.
#include <fmt/format.h>

#include <algorithm>

#include "codec/block_coder.hpp"
#include "codec/resolution.hpp"
#include "engine/encoding_plan.hpp"
#include "engine/engine.hpp"

namespace diapause::engine {

Status Engine::allow_loss(const std::string& name, const codec::Method& method) {
  DIAPAUSE_TRY_ASSIGN(ProtectedRegion * region, protected_region(name));
  const auto bad = [&](const Error& why) { return fail(why.code, fmt::format("region '{}': {}", name, why.message)); };
  if (!codec::is_lossy(method.codec)) return fail(Code::argument, "this codec changes no values");
  if (const Status fits = codec::check_method(method, region->description.type); !fits) return bad(fits.error());
  if (const auto codec = codec::make_codec(method.codec); !codec) return bad(codec.error());
  const ByteView values(region->data, region->description.raw_bytes());
  if (const Status fits = codec::check_resolution(method, region->description.type, values); !fits) {
    return bad(fits.error());
  }
  region->description.compression = {static_cast<std::uint32_t>(method.codec), method.bound};
  return {};
}

Status Engine::keep_invariant(Invariant invariant) {
  for (const std::string& name : invariant.regions) {
    DIAPAUSE_TRY(protected_region(name));
  }
  invariants_.push_back(std::move(invariant));
  return {};
}

namespace {

// What would come back from the global tier: block by block, as it is encoded there.
Result<ByteVector> as_it_comes_back(const ProtectedRegion& region) {
  const format::Region& described = region.description;
  ByteVector values(region.data, region.data + described.raw_bytes());
  if (described.compression.bound == 0 || described.count == 0) return values;
  const codec::BlockPlan plan(described, format::kBlockBytes);
  DIAPAUSE_TRY_ASSIGN(codec::BlockEncoder encoder, codec::BlockEncoder::create(allowed_method(described)));
  codec::BlockDecoder decoder;
  for (std::uint64_t block = 0; block < plan.block_count(); ++block) {
    const codec::Shape shape = plan.shape_of(block);
    const MutableBytes place = MutableBytes(values).subspan(plan.offset_of(block), shape.bytes());
    DIAPAUSE_TRY(encoder.encode(place, shape));
    DIAPAUSE_TRY(decoder.decode(encoder.block(), shape, place));
  }
  return values;
}

}  // namespace

Result<bool> Engine::holds(const Invariant& invariant) {
  std::vector<ByteVector> values;
  for (const std::string& name : invariant.regions) {
    const auto region = protected_region(name);
    if (!region) return true;  // not protected any more: nothing of it is stored
    DIAPAUSE_TRY_ASSIGN(ByteVector one, as_it_comes_back(**region));
    values.push_back(std::move(one));
  }
  const std::vector<ByteView> views(values.begin(), values.end());
  return invariant.holds(views);
}

// Takes the permission back, for one version, where an invariant would not hold. Collective: of a decomposed field all
// ranks store the same.
Status Engine::apply_invariants(format::ImageIndex& index) {
  for (const Invariant& invariant : invariants_) {
    Status mine;
    bool is_kept = true;
    try {
      auto held = holds(invariant);
      if (held) is_kept = *held;
      if (!held) mine = fail(held.error());
    } catch (const std::bad_alloc&) {
      mine = fail(Code::memory, "no memory to see what compressed values would be");
    }
    if (!mine) context_->log(Severity::warning, "an invariant could not be asked: " + mine.error().message);
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t refused, context_->comm->all_max(is_kept && mine ? 0 : 1));
    if (refused == 0) continue;
    for (format::Region& region : index.regions) {
      if (std::ranges::find(invariant.regions, region.name) != invariant.regions.end()) region.compression = {};
    }
    if (context_->rank() != 0) continue;
    context_->log(Severity::warning, fmt::format("{} are stored without loss: an invariant would not hold of what the "
                                                 "codec leaves of them",
                                                 fmt::join(invariant.regions, ", ")));
  }
  return {};
}

}  // namespace diapause::engine
