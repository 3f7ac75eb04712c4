// A compressed block: a header that says what lies behind it, and the payload of one codec. docs/formats/
// compressed-block.md has the field table and an example. Pure: bytes in, values out.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/image.hpp"

namespace diapause::codec {

inline constexpr std::uint32_t kBlockFormatVersion = 1;
inline constexpr std::uint64_t kBlockHeaderBytes = 104;
inline constexpr std::uint64_t kMaxBlockBytes = 4 * kMiB;  // of decoded data; a decoder refuses more
inline constexpr std::size_t kMaxBlockDims = 4;

using Dims = std::array<std::uint64_t, kMaxBlockDims>;  // slowest first; ones in front where there are fewer

// What the elements of a block are and how they lie. Of type `bytes` an element is one byte.
struct Shape {
  format::ElementType type = format::ElementType::bytes;
  Dims dims = {1, 1, 1, 1};
  bool operator==(const Shape&) const = default;

  std::uint64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  std::uint64_t element_bytes() const;  // at least 1
  std::uint64_t bytes() const { return count() * element_bytes(); }
  bool is_floating() const { return type == format::ElementType::float32 || type == format::ElementType::float64; }
};

// The numbers are stored.
enum class CodecId : std::uint32_t { raw = 0, shuffle_lz4 = 1, shuffle_zstd = 2, lattice = 3, sz3 = 4, zfp = 5 };
const char* codec_name(CodecId id);  // "shuffle+lz4"; "unknown" of a number that has no codec
constexpr bool is_lossy(CodecId id) { return id >= CodecId::lattice; }

struct BlockHeader {
  CodecId codec = CodecId::raw;
  std::uint32_t codec_version = 0;  // of the payload; of SZ3 and ZFP, the version of their stream
  std::uint32_t arithmetic = 0;     // lossy: kStrictArithmetic; else 0
  Shape shape;
  double bound = 0;  // lossy: the greatest absolute error; else 0
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;  // XXH3-64; compared before a decoder sees the payload
  std::uint64_t decoded_checksum = 0;  // XXH3-64 of what the decoder gave when the block was written
  bool operator==(const BlockHeader&) const = default;
};

// The floating-point arithmetic that decoders of lossy payloads rely on: IEEE 754, to nearest, no fused operations.
inline constexpr std::uint32_t kStrictArithmetic = 1;

// Exactly kBlockHeaderBytes, checksummed.
ByteVector encode_block_header(const BlockHeader& header);
// `data` begins with a header and goes on as it likes. Code::corrupt for what is not a sound header of at most
// kMaxBlockBytes of decoded data and no more than that of payload; Code::mismatch, naming both, for a sound one of
// another format version, byte order or arithmetic.
Result<BlockHeader> decode_block_header(ByteView data);

// How a region is cut into blocks: boxes that are also runs of consecutive elements, of about `target_bytes`, cut along
// the slowest dimension that allows it and as equally as that goes.
class BlockPlan {
 public:
  // A place of more than kMaxBlockDims dimensions is seen as one of four, the slowest ones taken together. Without a
  // place, the elements lie in a row. 0 < target_bytes <= kMaxBlockBytes.
  BlockPlan(const format::Region& region, std::uint64_t target_bytes);

  std::uint64_t block_count() const { return outer_ * chunks_; }
  Shape shape_of(std::uint64_t block) const;
  std::uint64_t offset_of(std::uint64_t block) const;  // in bytes of the region
  std::uint64_t raw_bytes() const { return whole_.bytes(); }
  format::ElementType type() const { return whole_.type; }

 private:
  std::uint64_t first_row(std::uint64_t chunk) const;

  Shape whole_;
  std::size_t cut_ = 0;       // the dimension along which it is cut
  std::uint64_t outer_ = 1;   // product of the dimensions before it
  std::uint64_t inner_ = 1;   // elements of one row of it
  std::uint64_t chunks_ = 1;  // of each row of outer dimensions
};

}  // namespace diapause::codec
