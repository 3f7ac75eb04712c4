#include "codec/block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::string_view kMagic = "DIAPBLK1";
constexpr std::uint32_t kByteOrder = std::endian::native == std::endian::little ? 1 : 2;

Status check_shape(const BlockHeader& header) {
  std::uint64_t bytes = header.shape.element_bytes();
  for (const std::uint64_t dim : header.shape.dims) {
    if (dim == 0 || dim > kMaxBlockBytes / bytes)
      return fail(Code::corrupt, "compressed block: impossible dimensions");
    bytes *= dim;
  }
  if (header.payload_bytes > bytes)
    return fail(Code::corrupt, "compressed block: the payload is larger than the data");
  return {};
}

Status check_meaning(const BlockHeader& header) {
  const bool lossy = is_lossy(header.codec);
  if (lossy != (header.bound != 0) || !std::isfinite(header.bound) || std::signbit(header.bound)) {
    return fail(Code::corrupt, "compressed block: the bound does not fit the codec");
  }
  if (lossy && !header.shape.is_floating()) {
    return fail(Code::corrupt,
                "compressed block: a lossy codec on elements that are not floating-point");
  }
  const std::uint32_t arithmetic = lossy ? kStrictArithmetic : 0;
  if (header.arithmetic != arithmetic) {
    return fail(Code::mismatch,
                fmt::format("compressed block: written with arithmetic {}; this build has {}",
                            header.arithmetic, arithmetic));
  }
  return {};
}

// Returns the region's dimensions as four numbers. format::lay_out() has checked that their product
// is the number of elements.
Dims dims_of(const format::Region& region) {
  Dims dims = {1, 1, 1, 1};
  if (region.type == format::ElementType::bytes) {
    dims.back() = region.element_bytes * region.count;
    return dims;
  }
  if (region.place.empty()) {
    dims.back() = region.count;
    return dims;
  }
  const std::size_t given = region.place.size();
  for (std::size_t i = 0; i < given; ++i) {
    const std::size_t from_end = std::min(given - 1 - i, kMaxBlockDims - 1);
    dims[kMaxBlockDims - 1 - from_end] *= region.place[i].shape;
  }
  return dims;
}

}  // namespace

std::uint64_t Shape::element_bytes() const {
  return std::max<std::uint64_t>(1, format::element_bytes_of(type));
}

const char* codec_name(CodecId id) {
  switch (id) {
    case CodecId::raw:
      return "raw";
    case CodecId::shuffle_lz4:
      return "shuffle+lz4";
    case CodecId::shuffle_zstd:
      return "shuffle+zstd";
    case CodecId::lattice:
      return "lattice";
    case CodecId::sz3:
      return "sz3";
    case CodecId::zfp:
      return "zfp";
  }
  return "unknown";
}

ByteVector encode_block_header(const BlockHeader& header) {
  format::Writer writer(kBlockHeaderBytes);
  writer.text(kMagic);
  writer.u32(kBlockFormatVersion);
  writer.u32(kByteOrder);
  writer.u32(static_cast<std::uint32_t>(header.codec));
  writer.u32(header.codec_version);
  writer.u32(header.arithmetic);
  writer.u32(static_cast<std::uint32_t>(header.shape.type));
  for (const std::uint64_t dim : header.shape.dims) writer.u64(dim);
  writer.u64(std::bit_cast<std::uint64_t>(header.bound));
  writer.u64(header.payload_bytes);
  writer.u64(header.payload_checksum);
  writer.u64(header.decoded_checksum);
  writer.u64(format::checksum64(writer.written()));
  return writer.take();
}

Result<BlockHeader> decode_block_header(ByteView data) {
  if (data.size() < kBlockHeaderBytes) {
    return fail(Code::corrupt,
                fmt::format("compressed block: {} bytes where a header of {} is needed",
                            data.size(), kBlockHeaderBytes));
  }
  format::Reader reader(data.first(kBlockHeaderBytes));
  if (reader.text(kMagic.size()) != kMagic)
    return fail(Code::corrupt, "not a compressed block of Diapause");
  const std::uint32_t version = reader.u32();
  const std::uint32_t order = reader.u32();
  BlockHeader header;
  header.codec = static_cast<CodecId>(reader.u32());
  header.codec_version = reader.u32();
  header.arithmetic = reader.u32();
  const std::uint32_t type = reader.u32();
  for (std::uint64_t& dim : header.shape.dims) dim = reader.u64();
  header.bound = std::bit_cast<double>(reader.u64());
  header.payload_bytes = reader.u64();
  header.payload_checksum = reader.u64();
  header.decoded_checksum = reader.u64();
  if (reader.u64() != format::checksum64(data.first(kBlockHeaderBytes - 8))) {
    return fail(Code::corrupt, "compressed block: the checksum of the header is wrong");
  }
  if (version != kBlockFormatVersion) {
    return fail(Code::mismatch,
                fmt::format("compressed block: format version {}; this build reads {}", version,
                            kBlockFormatVersion));
  }
  if (order != kByteOrder) {
    return fail(
        Code::mismatch,
        fmt::format("compressed block: byte order {}; this machine has {} (1: little-endian)",
                    order, kByteOrder));
  }
  if (type >= format::kElementTypes)
    return fail(Code::corrupt, "compressed block: unknown element type");
  header.shape.type = static_cast<format::ElementType>(type);
  DIAPAUSE_TRY(check_shape(header));
  DIAPAUSE_TRY(check_meaning(header));
  return header;
}

BlockPlan::BlockPlan(const format::Region& region, std::uint64_t target_bytes) {
  whole_.type = region.type;
  whole_.dims = dims_of(region);
  const std::uint64_t target = std::max<std::uint64_t>(1, target_bytes / whole_.element_bytes());
  std::uint64_t inner = whole_.count();
  std::uint64_t outer = 1;
  if (inner == 0) {
    outer_ = 0;  // no blocks
    return;
  }
  for (std::size_t i = 0; i < kMaxBlockDims; ++i) {
    const std::uint64_t dim = whole_.dims[i];
    inner /= dim;
    cut_ = i;
    outer_ = outer;
    inner_ = inner;
    if (inner <= target && (dim > 1 || i + 1 == kMaxBlockDims)) break;
    outer *= dim;
  }
  const std::uint64_t most_rows = std::max<std::uint64_t>(1, target / inner_);
  chunks_ = (whole_.dims[cut_] + most_rows - 1) / most_rows;
}

// The rows are distributed so that the sizes of chunks differ by one at most.
std::uint64_t BlockPlan::first_row(std::uint64_t chunk) const {
  const std::uint64_t rows = whole_.dims[cut_];
  return rows / chunks_ * chunk + std::min(rows % chunks_, chunk);
}

Shape BlockPlan::shape_of(std::uint64_t block) const {
  Shape shape = whole_;
  for (std::size_t i = 0; i < cut_; ++i) shape.dims[i] = 1;
  const std::uint64_t chunk = block % chunks_;
  shape.dims[cut_] = first_row(chunk + 1) - first_row(chunk);
  return shape;
}

std::uint64_t BlockPlan::offset_of(std::uint64_t block) const {
  const std::uint64_t row = block / chunks_ * whole_.dims[cut_] + first_row(block % chunks_);
  return row * inner_ * whole_.element_bytes();
}

}  // namespace diapause::codec
