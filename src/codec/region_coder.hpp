// A whole region, in blocks, by as many threads as the caller lends.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "codec/block_coder.hpp"

namespace diapause::codec {

// Calls piece(i) for every i below `pieces`, in whatever threads, and returns when all is done; sys::ThreadPool::run is
// one.
using RunPieces = std::function<void(std::uint64_t pieces, const std::function<void(std::uint64_t piece)>& piece)>;

// The `scratch.size()` bytes of a region at `offset`: in `scratch`, or where they lie until the region is encoded.
// Called in the order of the blocks, from the thread that encodes the region.
using RawBytes = std::function<Result<ByteView>(std::uint64_t offset, MutableBytes scratch)>;

// Takes one encoded block. Called in the order of the blocks, from the thread that encodes the region.
using BlockSink = std::function<Status(ByteView block)>;

struct RegionReport {
  std::uint64_t blocks = 0;
  std::uint64_t lossy_blocks = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t smaller_without_loss = 0;  // blocks, as the two below: Fallback
  std::uint64_t bound_too_small = 0;
  std::uint64_t guarded = 0;
  double greatest_error = 0;  // of all lossy blocks, measured

  // Blocks that were to lose accuracy and did not.
  std::uint64_t fallen_back() const { return smaller_without_loss + bound_too_small + guarded; }

  void add(const BlockReport& block);
  void add(const RegionReport& region);
};

struct Workforce {
  RunPieces run;
  std::uint64_t size = 1;  // blocks in work at once: memory is this many times that of a BlockEncoder
};

// Keeps its memory from region to region. Not for several threads at once.
class RegionEncoder {
 public:
  // Code::config if this build does not have the codec.
  static Result<RegionEncoder> create(const Method& method, Workforce force);

  // The blocks of `raw` (plan.raw_bytes() bytes, which must not change meanwhile), one after the other into `sink`.
  // They do not depend on the workforce. Fails as check_method and BlockEncoder do, or with what `raw` or the sink
  // says.
  Result<RegionReport> encode(const RawBytes& raw, const BlockPlan& plan, const BlockSink& sink);
  Result<RegionReport> encode(ByteView raw, const BlockPlan& plan, const BlockSink& sink);

 private:
  RegionEncoder(const Method& method, Workforce force) : method_(method), force_(std::move(force)) {}

  Method method_;
  Workforce force_;
  std::vector<BlockEncoder> encoders_;  // one for each block in work
  std::vector<ByteVector> scratch_;     // the same
};

class RegionDecoder {
 public:
  explicit RegionDecoder(Workforce force) : force_(std::move(force)), decoders_(force_.size) {}

  // Fills `out` (plan.raw_bytes() bytes) from the blocks that lie one after the other in `encoded`. An error names the
  // block.
  Status decode(ByteView encoded, const BlockPlan& plan, MutableBytes out);

 private:
  Workforce force_;
  std::vector<BlockDecoder> decoders_;
};

}  // namespace diapause::codec
