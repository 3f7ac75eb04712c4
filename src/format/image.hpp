// The checkpoint file ("image") of one rank, or of one parity. docs/formats/image.md has the tables
// of fields and an example.
//
//   [header, one page][region 0]...[region n-1][index]
//
// The header identifies the checkpoint and locates the index. The index lists the regions and the
// checksum of every block. The manifest holds the digest of the index, which thereby fixes the
// whole content of an image. The functions are pure. Decoders treat their input as hostile: they
// allocate no more than the input's size, do not overflow, and check every offset against the
// file's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::format {

// The newest format version that is read; it is written only where it is needed.
inline constexpr std::uint32_t kImageFormatVersion = 3;
inline constexpr std::uint64_t kHeaderBytes = kPageBytes;
inline constexpr std::uint32_t kBlockBytes = 1024 * 1024;  // region data that one checksum covers
inline constexpr std::uint32_t kMaxDims = 8;
// A cache line: regions of a packed image begin at multiples of it.
inline constexpr std::uint64_t kPackedBytes = 64;
// Number of small regions from which on an image is packed; with fewer, older releases can read it.
inline constexpr std::size_t kPackedFrom = 64;

enum class ImageKind : std::uint32_t { data = 1, parity = 2 };

struct ImageHeader {
  std::uint32_t format_version = 1;  // version of the index; see format_version_of()
  ImageKind kind = ImageKind::data;
  VersionId version;
  std::uint32_t owner = 0;  // for data: the rank; for parity: the index of the member in its group
  std::uint32_t part = 0;   // for data: 0 (decision 0042); for parity: the number of the group
  std::uint32_t rank_count = 0;  // number of ranks of the job
  // The file may be longer because it is reused; bytes beyond are meaningless.
  std::uint64_t file_bytes = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  Digest128 index_digest;
  bool operator==(const ImageHeader&) const = default;
};

// Returns exactly kHeaderBytes, with a checksum. The decoder refuses a header without ranks, and
// one whose index is not page-aligned or reaches beyond file_bytes.
ByteVector encode_header(const ImageHeader& header);
// `data` must hold at least the first page of the file. Returns Code::corrupt for anything that is
// not a sound header, and Code::mismatch, naming both versions, for a sound header of a newer
// format version.
Result<ImageHeader> decode_header(ByteView data);

// The numbers equal those of diapause_type.
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
std::uint64_t element_bytes_of(ElementType type);  // 0 for `bytes`: the user gives the size
const char* element_type_name(ElementType type);   // a name like "float64"

// One dimension of a region's place in a global array.
struct BlockDim {
  std::uint64_t shape, global_shape, start;
  bool operator==(const BlockDim&) const = default;
};

// The encoding of a region's bytes in the file. The numbers are written to files.
enum class Encoding : std::uint32_t {
  raw = 0,    // as in memory
  blocks = 1  // compressed, in blocks of codec/block.hpp
};

// A method of compression, by the numbers that files hold. The folder codec/ defines their meaning.
struct Compression {
  std::uint32_t codec = 0;  // a codec::CodecId; 0 for none
  double bound = 0;         // the greatest absolute error of a value; 0: no value is changed
  bool operator==(const Compression&) const = default;
};

// The blocks of a region that is stored compressed.
struct EncodedBlocks {
  std::vector<std::uint64_t> sizes;  // sizes of the blocks in the file, which follow one another
  std::uint64_t lossy = 0;           // blocks whose values were changed
  std::uint64_t fallen_back = 0;     // blocks that were to be lossy, and are stored without loss
  double greatest_error = 0;         // measured over all values; at most Compression::bound
  bool operator==(const EncodedBlocks&) const = default;
};

struct Region {
  std::string name;
  ElementType type = ElementType::bytes;
  std::uint64_t element_bytes = 1;
  std::uint64_t count = 0;
  std::vector<BlockDim> place;  // empty: no place is recorded
  Encoding encoding = Encoding::raw;
  // The compression that was asked for. For a raw region, it is done in the global tier.
  Compression compression;
  EncodedBlocks encoded;           // used if encoding == blocks
  std::uint64_t offset = 0;        // place in the file, a multiple of alignment_of()
  std::uint64_t stored_bytes = 0;  // raw_bytes() for raw regions, else the sum of encoded.sizes
  std::vector<std::uint64_t> block_checksums;  // one checksum of the stored bytes for each block
  bool operator==(const Region&) const = default;

  bool is_raw() const { return encoding == Encoding::raw; }
  std::uint64_t raw_bytes() const { return element_bytes * count; }
  // Returns the number of checked blocks. Raw regions have blocks of kBlockBytes, the last one
  // shorter.
  std::uint64_t block_count() const {
    return is_raw() ? (stored_bytes + kBlockBytes - 1) / kBlockBytes : encoded.sizes.size();
  }
};

struct ImageIndex {
  std::vector<Region> regions;
  bool operator==(const ImageIndex&) const = default;
};

// Returns whether small regions share pages. They do so only where there are many, because older
// releases cannot read that.
bool is_packed(const ImageIndex& index);
// Returns what the region's offset must be a multiple of. Regions of a page or more begin at a
// page, so that they can be mapped.
std::uint64_t alignment_of(const Region& region, bool is_packed);

// Returns the oldest format version that can express an index that was laid out: 3 if regions share
// pages, else 2 if the index mentions compression, else 1.
std::uint32_t format_version_of(const ImageIndex& index);

// Encodes the index in the format version that format_version_of() returns.
ByteVector encode_index(const ImageIndex& index);
// Compares digest128(data) with header.index_digest first. Then checks sizes and order: regions do
// not overlap and lie in [kHeaderBytes, header.index_offset), and names are unique and sound.
Result<ImageIndex> decode_index(ByteView data, const ImageHeader& header);

// Assigns every region its offset, gives raw regions their stored_bytes, and sizes block_checksums.
// Returns the offset of the index, which is page-aligned. Returns Code::argument, naming the
// region, if sizes overflow or decode_index() would refuse the description.
Result<std::uint64_t> lay_out(ImageIndex& index);
// Returns the size of encode_index(index) for an index that was laid out. The values of the
// checksums do not matter.
std::uint64_t encoded_index_bytes(const ImageIndex& index);

}  // namespace diapause::format
