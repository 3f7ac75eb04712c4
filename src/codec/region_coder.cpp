#include "codec/region_coder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace diapause::codec {
namespace {

tl::unexpected<Error> fail_at(std::uint64_t block, Error error) {
  error.message = fmt::format("block {}: {}", block, error.message);
  return fail(std::move(error));
}

}  // namespace

void RegionReport::add(const BlockReport& block) {
  ++blocks;
  lossy_blocks += is_lossy(block.codec);
  raw_bytes += block.raw_bytes;
  stored_bytes += block.stored_bytes;
  smaller_without_loss += block.fallback == Fallback::smaller;
  bound_too_small += block.fallback == Fallback::bound_too_small;
  guarded += block.fallback == Fallback::guard;
  greatest_error = std::max(greatest_error, block.greatest_error);
}

void RegionReport::add(const RegionReport& region) {
  blocks += region.blocks;
  lossy_blocks += region.lossy_blocks;
  raw_bytes += region.raw_bytes;
  stored_bytes += region.stored_bytes;
  smaller_without_loss += region.smaller_without_loss;
  bound_too_small += region.bound_too_small;
  guarded += region.guarded;
  greatest_error = std::max(greatest_error, region.greatest_error);
}

Result<RegionEncoder> RegionEncoder::create(const Method& method, Workforce force) {
  RegionEncoder encoder(method, std::move(force));
  for (std::uint64_t i = 0; i < encoder.force_.size; ++i) {
    DIAPAUSE_TRY_ASSIGN(BlockEncoder one, BlockEncoder::create(method));
    encoder.encoders_.push_back(std::move(one));
  }
  return encoder;
}

Result<RegionReport> RegionEncoder::encode(ByteView raw, const BlockPlan& plan,
                                           const BlockSink& sink) {
  return encode(
      [raw](std::uint64_t offset, MutableBytes scratch) -> Result<ByteView> {
        return raw.subspan(offset, scratch.size());
      },
      plan, sink);
}

Result<RegionReport> RegionEncoder::encode(const RawBytes& raw, const BlockPlan& plan,
                                           const BlockSink& sink) {
  DIAPAUSE_TRY(check_method(method_, plan.type()));
  RegionReport report;
  std::vector<ByteView> views(encoders_.size());
  scratch_.resize(encoders_.size());
  std::vector<std::optional<Result<BlockReport>>> done(encoders_.size());
  for (std::uint64_t first = 0; first < plan.block_count(); first += done.size()) {
    const std::uint64_t pieces = std::min<std::uint64_t>(done.size(), plan.block_count() - first);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      scratch_[i].resize(
          std::max<std::size_t>(scratch_[i].size(), plan.shape_of(first + i).bytes()));
      const MutableBytes room = MutableBytes(scratch_[i]).first(plan.shape_of(first + i).bytes());
      DIAPAUSE_TRY_ASSIGN(views[i], raw(plan.offset_of(first + i), room));
    }
    force_.run(pieces, [&](std::uint64_t i) {
      done[i] = encoders_[i].encode(views[i], plan.shape_of(first + i));
    });
    for (std::uint64_t i = 0; i < pieces; ++i) {
      if (!*done[i]) return fail_at(first + i, std::move(done[i]->error()));
      DIAPAUSE_TRY(sink(encoders_[i].block()));
      report.add(**done[i]);
    }
  }
  return report;
}

Status RegionDecoder::decode(ByteView encoded, const BlockPlan& plan, MutableBytes out) {
  std::vector<ByteView> blocks(decoders_.size());
  std::vector<Status> done(decoders_.size());
  for (std::uint64_t first = 0; first < plan.block_count(); first += done.size()) {
    const std::uint64_t pieces = std::min<std::uint64_t>(done.size(), plan.block_count() - first);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      auto header = decode_block_header(encoded);
      if (!header) return fail_at(first + i, std::move(header.error()));
      blocks[i] =
          encoded.first(std::min(encoded.size(), kBlockHeaderBytes + header->payload_bytes));
      encoded = encoded.subspan(blocks[i].size());
    }
    force_.run(pieces, [&](std::uint64_t i) {
      const Shape shape = plan.shape_of(first + i);
      done[i] = decoders_[i].decode(blocks[i], shape,
                                    out.subspan(plan.offset_of(first + i), shape.bytes()));
    });
    for (std::uint64_t i = 0; i < pieces; ++i) {
      if (!done[i]) return fail_at(first + i, std::move(done[i].error()));
    }
  }
  if (!encoded.empty())
    return fail(Code::corrupt, "compressed region: bytes behind the last block");
  return {};
}

}  // namespace diapause::codec
