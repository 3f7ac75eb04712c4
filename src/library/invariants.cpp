#include "library/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codec/block_coder.hpp"
#include "codec/resolution.hpp"
#include "engine/encoding/encoding_plan.hpp"

namespace diapause::library {

Status allow_loss(RegionTable& regions, const std::string& name, const codec::Method& method) {
  DIAPAUSE_TRY_ASSIGN(ProtectedRegion* const region, regions.get(name));
  const auto bad = [&](const Error& why) {
    return fail(why.code, fmt::format("region '{}': {}", name, why.message));
  };
  if (!codec::is_lossy(method.codec)) return fail(Code::argument, "this codec changes no values");
  if (const Status fits = codec::check_method(method, region->description.type); !fits)
    return bad(fits.error());
  if (const auto codec = codec::make_codec(method.codec); !codec) return bad(codec.error());
  const ByteView values(region->data, region->description.raw_bytes());
  if (const Status fits = codec::check_resolution(method, region->description.type, values);
      !fits) {
    return bad(fits.error());
  }
  region->description.compression = {static_cast<std::uint32_t>(method.codec), method.bound};
  return {};
}

Status Invariants::add(RegionTable& regions, Invariant invariant) {
  for (const std::string& name : invariant.regions) DIAPAUSE_TRY(regions.get(name));
  all_.push_back(std::move(invariant));
  return {};
}

namespace {

// Computes the values that a restart from the global tier would give, block by block, as they are
// encoded there.
Result<ByteVector> as_it_comes_back(const ProtectedRegion& region) {
  const format::Region& described = region.description;
  ByteVector values(region.data, region.data + described.raw_bytes());
  if (described.compression.bound == 0 || described.count == 0) return values;
  const codec::BlockPlan plan(described, format::kBlockBytes);
  DIAPAUSE_TRY_ASSIGN(codec::BlockEncoder encoder,
                      codec::BlockEncoder::create(engine::allowed_method(described)));
  codec::BlockDecoder decoder;
  for (std::uint64_t block = 0; block < plan.block_count(); ++block) {
    const codec::Shape shape = plan.shape_of(block);
    const MutableBytes place = MutableBytes(values).subspan(plan.offset_of(block), shape.bytes());
    DIAPAUSE_TRY(encoder.encode(place, shape));
    DIAPAUSE_TRY(decoder.decode(encoder.block(), shape, place));
  }
  return values;
}

Result<bool> would_hold(const Invariant& invariant, RegionTable& regions) {
  std::vector<ByteVector> values;
  for (const std::string& name : invariant.regions) {
    const auto region = regions.get(name);
    if (!region) return true;  // it is not protected any more, so nothing of it is stored
    DIAPAUSE_TRY_ASSIGN(ByteVector one, as_it_comes_back(**region));
    values.push_back(std::move(one));
  }
  const std::vector<ByteView> views(values.begin(), values.end());
  return invariant.holds(views);
}

}  // namespace

Status Invariants::apply(const engine::Context& context, RegionTable& regions,
                         format::ImageIndex& index) const {
  for (const Invariant& invariant : all_) {
    Status mine;
    bool is_kept = true;
    try {
      auto held = would_hold(invariant, regions);
      if (held) is_kept = *held;
      if (!held) mine = fail(held.error());
    } catch (const std::bad_alloc&) {
      mine = fail(Code::memory, "no memory to see what compressed values would be");
    }
    if (!mine)
      context.log(Severity::warning, "an invariant could not be asked: " + mine.error().message);
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t refused,
                        context.comm->all_max(is_kept && mine ? 0 : 1));
    if (refused == 0) continue;
    for (format::Region& region : index.regions) {
      if (std::ranges::find(invariant.regions, region.name) != invariant.regions.end())
        region.compression = {};
    }
    if (context.rank() != 0) continue;
    context.log(Severity::warning,
                fmt::format("{} are stored without loss: an invariant would not hold of what the "
                            "codec leaves of them",
                            fmt::join(invariant.regions, ", ")));
  }
  return {};
}

}  // namespace diapause::library
