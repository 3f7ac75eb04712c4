// A compressed block: a header that describes the data behind it, and the payload of one codec.
// docs/formats/compressed-block.md has the table of fields and an example. The functions are pure.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/image.hpp"

namespace diapause::codec {

inline constexpr std::uint32_t kBlockFormatVersion = 1;
inline constexpr std::uint64_t kBlockHeaderBytes = 104;
// The largest size of decoded data. A decoder refuses more.
inline constexpr std::uint64_t kMaxBlockBytes = 4 * kMiB;
inline constexpr std::size_t kMaxBlockDims = 4;

// Dimensions, the slowest first. Missing dimensions are ones in front.
using Dims = std::array<std::uint64_t, kMaxBlockDims>;

// The type of the elements of a block and their arrangement. An element of type `bytes` is one
// byte.
struct Shape {
  format::ElementType type = format::ElementType::bytes;
  Dims dims = {1, 1, 1, 1};
  bool operator==(const Shape&) const = default;

  std::uint64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  std::uint64_t element_bytes() const;  // at least 1
  std::uint64_t bytes() const { return count() * element_bytes(); }
  bool is_floating() const {
    return type == format::ElementType::float32 || type == format::ElementType::float64;
  }
};

// The numbers are written to files.
enum class CodecId : std::uint32_t {
  raw = 0,
  shuffle_lz4 = 1,
  shuffle_zstd = 2,
  lattice = 3,
  sz3 = 4,
  zfp = 5
};
// Returns a name like "shuffle+lz4", or "unknown" for a number without a codec.
const char* codec_name(CodecId id);
constexpr bool is_lossy(CodecId id) { return id >= CodecId::lattice; }

struct BlockHeader {
  CodecId codec = CodecId::raw;
  // Version of the payload's layout; with SZ3 and ZFP, that of their stream.
  std::uint32_t codec_version = 0;
  std::uint32_t arithmetic = 0;  // kStrictArithmetic for lossy codecs, else 0
  Shape shape;
  double bound = 0;  // the greatest absolute error for lossy codecs, else 0
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;  // XXH3-64, compared before a decoder sees the payload
  std::uint64_t decoded_checksum = 0;  // XXH3-64 of the decoder's output when the block was written
  bool operator==(const BlockHeader&) const = default;
};

// Decoders of lossy payloads rely on this floating-point arithmetic: IEEE 754, rounding to nearest,
// no fused operations.
inline constexpr std::uint32_t kStrictArithmetic = 1;

// Returns exactly kBlockHeaderBytes, with a checksum.
ByteVector encode_block_header(const BlockHeader& header);
// `data` begins with a header; any data may follow. Returns Code::corrupt for anything that is not
// a sound header with at most kMaxBlockBytes of decoded data and no more than that of payload.
// Returns Code::mismatch, naming both, for a sound header of another format version, byte order or
// arithmetic.
Result<BlockHeader> decode_block_header(ByteView data);

// The division of a region into blocks. A block is a box that is also a run of consecutive
// elements, of about `target_bytes`. The region is divided along the slowest dimension that allows
// this, as evenly as possible.
class BlockPlan {
 public:
  // 0 < target_bytes <= kMaxBlockBytes. A place of more than kMaxBlockDims dimensions is treated as
  // one of four, with the slowest dimensions merged. Without a place, the region has one dimension.
  BlockPlan(const format::Region& region, std::uint64_t target_bytes);

  std::uint64_t block_count() const { return outer_ * chunks_; }
  Shape shape_of(std::uint64_t block) const;
  // Returns the place of a block in the region, in bytes.
  std::uint64_t offset_of(std::uint64_t block) const;
  std::uint64_t raw_bytes() const { return whole_.bytes(); }
  format::ElementType type() const { return whole_.type; }

 private:
  std::uint64_t first_row(std::uint64_t chunk) const;

  Shape whole_;
  std::size_t cut_ = 0;       // the dimension that is divided
  std::uint64_t outer_ = 1;   // product of the dimensions before the one that blocks divide
  std::uint64_t inner_ = 1;   // elements of one index of the divided dimension
  std::uint64_t chunks_ = 1;  // blocks for each index of the outer dimensions
};

}  // namespace diapause::codec
