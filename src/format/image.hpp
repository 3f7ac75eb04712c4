// The checkpoint file ("image") of one rank, and of one parity. docs/formats/image.md has the field tables and an
// example.
//
//   [header, one page][region 0]...[region n-1][index]
//
// The header names the checkpoint and points at the index; the index lists the regions and the checksum of every
// block. The whole content of an image is pinned by the digest of its index, which the manifest holds.
// Pure: bytes in, values out. Decoders treat their input as hostile: no allocation beyond the input's size, no
// overflow, every offset checked against the file's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::format {

inline constexpr std::uint32_t kImageFormatVersion = 3;  // the newest that is read, and written where it is needed
inline constexpr std::uint64_t kHeaderBytes = kPageBytes;
inline constexpr std::uint32_t kBlockBytes = 1024 * 1024;  // of region data per checksum
inline constexpr std::uint32_t kMaxDims = 8;
inline constexpr std::uint64_t kPackedBytes = 64;  // a cache line: where regions of a packed image may begin
inline constexpr std::size_t kPackedFrom = 64;     // small regions; with fewer, readers of older formats go first

enum class ImageKind : std::uint32_t { data = 1, parity = 2 };

struct ImageHeader {
  std::uint32_t format_version = 1;  // that the index takes: format_version_of()
  ImageKind kind = ImageKind::data;
  VersionId version;
  std::uint32_t owner = 0;       // data: rank. parity: index of the member in its group
  std::uint32_t part = 0;        // data: 0 today; further images of the same rank. parity: group
  std::uint32_t rank_count = 0;  // of the job
  std::uint64_t file_bytes = 0;  // a file may be longer (recycled); bytes beyond are meaningless
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  Digest128 index_digest;
  bool operator==(const ImageHeader&) const = default;
};

// Exactly kHeaderBytes, checksummed. The decoder refuses a header without ranks, and one whose index is not
// page-aligned or reaches beyond file_bytes.
ByteVector encode_header(const ImageHeader& header);
// `data` is at least the first page of the file. Code::corrupt for anything that is not a sound header;
// Code::mismatch, naming both versions, for a sound one of a newer format version.
Result<ImageHeader> decode_header(ByteView data);

// Numbers equal diapause_type.
enum class ElementType : std::uint32_t {
  bytes = 0,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64
};
inline constexpr std::uint32_t kElementTypes = 11;
std::uint64_t element_bytes_of(ElementType type);  // 0 for `bytes`: the user says
const char* element_type_name(ElementType type);   // "float64"

struct BlockDim {  // the region's place in a global array, one dimension
  std::uint64_t shape, global_shape, start;
  bool operator==(const BlockDim&) const = default;
};

// How a region's bytes lie in the file. The numbers are stored.
enum class Encoding : std::uint32_t {
  raw = 0,    // as in memory
  blocks = 1  // compressed, in blocks of codec/block.hpp
};

// A method of compression, by the numbers that files hold. What they mean is codec/'s business.
struct Compression {
  std::uint32_t codec = 0;  // codec::CodecId; 0: none
  double bound = 0;         // the greatest absolute error of a value; 0: none is changed
  bool operator==(const Compression&) const = default;
};

// Of a region in compressed blocks.
struct EncodedBlocks {
  std::vector<std::uint64_t> sizes;  // in the file, one behind the other
  std::uint64_t lossy = 0;           // blocks whose values were changed
  std::uint64_t fallen_back = 0;     // blocks that were to be, and are stored without loss
  double greatest_error = 0;         // of all values, measured; at most Compression::bound
  bool operator==(const EncodedBlocks&) const = default;
};

struct Region {
  std::string name;
  ElementType type = ElementType::bytes;
  std::uint64_t element_bytes = 1;
  std::uint64_t count = 0;
  std::vector<BlockDim> place;  // empty: none recorded
  Encoding encoding = Encoding::raw;
  Compression compression;                     // what was asked for; of a raw region, to be done in the global tier
  EncodedBlocks encoded;                       // encoding == blocks
  std::uint64_t offset = 0;                    // in the file, a multiple of alignment_of()
  std::uint64_t stored_bytes = 0;              // raw: raw_bytes(); else the sum of encoded.sizes
  std::vector<std::uint64_t> block_checksums;  // of what is stored: of each block
  bool operator==(const Region&) const = default;

  bool is_raw() const { return encoding == Encoding::raw; }
  std::uint64_t raw_bytes() const { return element_bytes * count; }
  // Raw regions are checked in blocks of kBlockBytes, the last one shorter.
  std::uint64_t block_count() const {
    return is_raw() ? (stored_bytes + kBlockBytes - 1) / kBlockBytes : encoded.sizes.size();
  }
};

struct ImageIndex {
  std::vector<Region> regions;
  bool operator==(const ImageIndex&) const = default;
};

// Whether small regions share pages: only where there are many, because older releases cannot read that.
bool is_packed(const ImageIndex& index);
// What the offset of a region is a multiple of. Regions of a page or more can be mapped: they begin at a page.
std::uint64_t alignment_of(const Region& region, bool is_packed);

// The oldest format version that can say all this of an index that was laid out: 3 where regions share pages, else 2
// where compression is spoken of, else 1.
std::uint32_t format_version_of(const ImageIndex& index);

// Of format_version_of(index).
ByteVector encode_index(const ImageIndex& index);
// Checks sizes and order: regions do not overlap, lie in [kHeaderBytes, header.index_offset), names are unique and
// sound. Compares digest128(data) with header.index_digest first.
Result<ImageIndex> decode_index(ByteView data, const ImageHeader& header);

// Gives every region its offset, raw ones their stored_bytes, and sizes block_checksums; returns the offset of the
// index (page-aligned). Code::argument, naming the region, if sizes overflow or decode_index would refuse what was
// described.
Result<std::uint64_t> lay_out(ImageIndex& index);
// Size of encode_index(index) of an index that was laid out; the values of the checksums do not matter.
std::uint64_t encoded_index_bytes(const ImageIndex& index);

}  // namespace diapause::format
