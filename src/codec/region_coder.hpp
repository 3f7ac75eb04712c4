// Encodes and decodes a whole region in blocks, with as many threads as the caller provides.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "codec/block_coder.hpp"

namespace diapause::codec {

// Calls piece(i) for every i below `pieces` in any threads, and returns when all calls have
// returned. sys::ThreadPool::run() is an implementation.
using RunPieces = std::function<void(std::uint64_t pieces,
                                     const std::function<void(std::uint64_t piece)>& piece)>;

// Returns the `scratch.size()` bytes of a region at `offset`, either in `scratch` or in place,
// where they must stay until the region is encoded. Called in the order of the blocks by the thread
// that encodes the region.
using RawBytes = std::function<Result<ByteView>(std::uint64_t offset, MutableBytes scratch)>;

// Takes one encoded block. Called in the order of the blocks by the thread that encodes the region.
using BlockSink = std::function<Status(ByteView block)>;

struct RegionReport {
  std::uint64_t blocks = 0;
  std::uint64_t lossy_blocks = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t smaller_without_loss = 0;  // these three count blocks; see Fallback
  std::uint64_t bound_too_small = 0;
  std::uint64_t guarded = 0;
  double greatest_error = 0;  // the measured error of all lossy blocks

  // Returns the number of blocks that were to be lossy and are not.
  std::uint64_t fallen_back() const { return smaller_without_loss + bound_too_small + guarded; }

  void add(const BlockReport& block);
  void add(const RegionReport& region);
};

struct Workforce {
  RunPieces run;
  // Number of blocks in work at once. The memory taken is this many times that of a BlockEncoder.
  std::uint64_t size = 1;
};

// Encodes regions, keeping its memory from region to region. One thread at a time may use it.
class RegionEncoder {
 public:
  // Returns Code::config if this build does not have the codec.
  static Result<RegionEncoder> create(const Method& method, Workforce force);

  // Encodes `raw` (plan.raw_bytes() bytes, which must not change during the call) and passes the
  // blocks to `sink` one after the other. The blocks do not depend on the workforce. Fails like
  // check_method() and BlockEncoder, or with the error of `raw` or `sink`.
  Result<RegionReport> encode(const RawBytes& raw, const BlockPlan& plan, const BlockSink& sink);
  Result<RegionReport> encode(ByteView raw, const BlockPlan& plan, const BlockSink& sink);

 private:
  RegionEncoder(const Method& method, Workforce force)
      : method_(method), force_(std::move(force)) {}

  Method method_;
  Workforce force_;
  std::vector<BlockEncoder> encoders_;  // one for each block in work
  std::vector<ByteVector> scratch_;     // one for each block in work
};

class RegionDecoder {
 public:
  explicit RegionDecoder(Workforce force) : force_(std::move(force)), decoders_(force_.size) {}

  // Fills `out` (plan.raw_bytes() bytes) from the consecutive blocks in `encoded`. An error names
  // the block.
  Status decode(ByteView encoded, const BlockPlan& plan, MutableBytes out);

 private:
  Workforce force_;
  std::vector<BlockDecoder> decoders_;
};

}  // namespace diapause::codec
