#include "format/image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::format {
namespace {

constexpr std::string_view kHeaderMagic = "DIAPIMG1";
constexpr std::string_view kIndexMagic = "DIAPIDX1";
constexpr std::size_t kHeaderChecksumOffset = kHeaderBytes - 8;
constexpr std::uint64_t kIndexFixedBytes = 16;  // magic, number of regions
// The size of a region, without its name, dimensions and checksums.
constexpr std::uint64_t kRegionFixedBytes = 56;
constexpr std::uint64_t kDimBytes = 24;
constexpr std::uint64_t kCompressionBytes = 12;   // for each region, from format version 2 on
constexpr std::uint64_t kEncodedFixedBytes = 24;  // additional, of a region in compressed blocks
constexpr std::size_t kMaxRegionNameBytes = 255;

auto corrupt_header(const std::string& what) {
  return fail(Code::corrupt, "image header: " + what);
}
auto corrupt_index(const std::string& what) { return fail(Code::corrupt, "image index: " + what); }

// Returns the name for use in messages. Files may be hostile, and terminals obey control
// characters.
std::string printable(std::string_view name) {
  std::string text(name.substr(0, kMaxRegionNameBytes));
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

Status check_header(const ImageHeader& header) {
  if (header.kind != ImageKind::data && header.kind != ImageKind::parity) {
    return corrupt_header(fmt::format("unknown kind {}", static_cast<std::uint32_t>(header.kind)));
  }
  if (header.rank_count == 0) return corrupt_header("number of ranks is 0");
  if (header.kind == ImageKind::data && header.owner >= header.rank_count) {
    return corrupt_header(fmt::format("rank {} of {} ranks", header.owner, header.rank_count));
  }
  if (header.version.number == UINT64_MAX)
    return corrupt_header("version number is not below 2^64-1");
  if (header.file_bytes > kMaxFileBytes)
    return corrupt_header(fmt::format("file of {} bytes", header.file_bytes));
  if (header.index_offset < kHeaderBytes || header.index_offset % kPageBytes != 0) {
    return corrupt_header(fmt::format("index at byte {}", header.index_offset));
  }
  if (header.index_offset > header.file_bytes ||
      header.index_bytes > header.file_bytes - header.index_offset) {
    return corrupt_header(fmt::format("index of {} bytes at byte {} of a file of {}",
                                      header.index_bytes, header.index_offset, header.file_bytes));
  }
  return {};
}

// Returns whether the dimensions describe a block of `count` elements inside its global array.
bool is_sound_place(const std::vector<BlockDim>& place, std::uint64_t count) {
  if (place.size() > kMaxDims) return false;
  std::uint64_t product = 1;
  bool empty = false, overflow = false;
  for (const BlockDim& dim : place) {
    if (dim.shape > dim.global_shape || dim.start > dim.global_shape - dim.shape) return false;
    empty |= dim.shape == 0;
    overflow |= __builtin_mul_overflow(product, dim.shape, &product);
  }
  if (empty) return count == 0;
  return place.empty() || (!overflow && product == count);
}

bool is_sound_compression(const Region& region) {
  const auto [codec, bound] = region.compression;
  const bool is_floating =
      region.type == ElementType::float32 || region.type == ElementType::float64;
  if (bound != 0 && (!std::isnormal(bound) || bound < 0 || !is_floating || codec == 0))
    return false;
  if (std::signbit(bound)) return false;
  const EncodedBlocks& encoded = region.encoded;
  if (region.is_raw()) return encoded == EncodedBlocks{};
  if (codec == 0 || std::signbit(encoded.greatest_error) || !(encoded.greatest_error <= bound))
    return false;
  const std::uint64_t blocks = encoded.sizes.size();
  return encoded.lossy <= blocks && encoded.fallen_back <= blocks - encoded.lossy &&
         (bound != 0 || (encoded.lossy == 0 && encoded.fallen_back == 0));
}

// Checks what must hold for a region wherever it lies. `code` says who would be at fault.
Status check_description(const Region& region, Code code) {
  if (region.name.empty() || region.name.size() > kMaxRegionNameBytes ||
      region.name.find('\0') != std::string::npos) {
    return fail(code, fmt::format("region name '{}' is not 1 to {} bytes without NUL",
                                  printable(region.name), kMaxRegionNameBytes));
  }
  const auto bad = [&](const std::string& what) {
    return fail(code, fmt::format("region '{}': {}", printable(region.name), what));
  };
  const auto type = static_cast<std::uint32_t>(region.type);
  if (type >= kElementTypes) return bad(fmt::format("unknown element type {}", type));
  const std::uint64_t natural = element_bytes_of(region.type);
  if (region.element_bytes == 0 || (natural != 0 && region.element_bytes != natural)) {
    return bad(fmt::format("elements of {} bytes do not fit type {}", region.element_bytes,
                           element_type_name(region.type)));
  }
  if (!region.is_raw() && region.encoding != Encoding::blocks) {
    return bad(fmt::format("unknown encoding {}", static_cast<std::uint32_t>(region.encoding)));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(region.element_bytes, region.count, &bytes) || bytes > kMaxFileBytes) {
    return bad(
        fmt::format("{} elements of {} bytes are too many", region.count, region.element_bytes));
  }
  if (!is_sound_place(region.place, region.count)) {
    return bad(fmt::format("its {} dimensions do not describe a block of {} elements",
                           region.place.size(), region.count));
  }
  if (!is_sound_compression(region)) {
    return bad(fmt::format("codec {} with error bound {} does not fit it", region.compression.codec,
                           region.compression.bound));
  }
  return {};
}

Status check_names_unique(const std::vector<Region>& regions, Code code) {
  // Numbers sort much faster than names, which are compared only if two of the numbers are equal.
  std::vector<std::uint64_t> numbers;
  numbers.reserve(regions.size());
  for (const Region& region : regions) numbers.push_back(checksum64(as_byte_view(region.name)));
  std::ranges::sort(numbers);
  if (std::ranges::adjacent_find(numbers) == numbers.end()) return {};
  std::vector<std::string_view> names;
  names.reserve(regions.size());
  for (const Region& region : regions) names.push_back(region.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    return fail(code, fmt::format("two regions are named '{}'", printable(*twice)));
  return {};
}

// Checks the region's location: it must begin at or behind `*end`, which moves to the region's end,
// and must end before the index.
Status check_location(const Region& region, const ImageHeader& header, std::uint64_t* end) {
  const std::uint64_t index_offset = header.index_offset;
  const std::uint64_t alignment = header.format_version < 3 ? kPageBytes : kPackedBytes;
  if (region.is_raw() && region.stored_bytes != region.raw_bytes()) {
    return corrupt_index(fmt::format("region '{}': {} bytes stored for {} elements of {} bytes",
                                     printable(region.name), region.stored_bytes, region.count,
                                     region.element_bytes));
  }
  if (region.offset % alignment != 0 || region.offset < *end || region.offset > index_offset ||
      region.stored_bytes > index_offset - region.offset) {
    return corrupt_index(fmt::format(
        "region '{}': {} bytes at byte {} do not fit between bytes {} and {}",
        printable(region.name), region.stored_bytes, region.offset, *end, index_offset));
  }
  *end = region.offset + region.stored_bytes;
  return {};
}

void encode_compression(const Region& region, Writer& writer) {
  writer.u32(region.compression.codec);
  writer.u64(std::bit_cast<std::uint64_t>(region.compression.bound));
  if (region.is_raw()) return;
  writer.u64(region.encoded.lossy);
  writer.u64(region.encoded.fallen_back);
  writer.u64(std::bit_cast<std::uint64_t>(region.encoded.greatest_error));
  for (const std::uint64_t size : region.encoded.sizes) writer.u64(size);
}

// `blocks` is the number of blocks that the region announced.
Status decode_compression(Reader& reader, std::uint64_t blocks, Region& region) {
  region.compression.codec = reader.u32();
  region.compression.bound = std::bit_cast<double>(reader.u64());
  if (region.encoding != Encoding::blocks) return {};
  region.encoded.lossy = reader.u64();
  region.encoded.fallen_back = reader.u64();
  region.encoded.greatest_error = std::bit_cast<double>(reader.u64());
  if (!reader.has_items(blocks, 2 * sizeof(std::uint64_t))) {
    return corrupt_index(
        fmt::format("region '{}': {} compressed blocks announced, {} bytes of index left",
                    printable(region.name), blocks, reader.remaining()));
  }
  std::uint64_t left = region.stored_bytes;
  region.encoded.sizes.reserve(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t size = reader.u64();
    if (size == 0 || size > left) {
      return corrupt_index(fmt::format("region '{}': compressed block {} of {} bytes",
                                       printable(region.name), i, size));
    }
    left -= size;
    region.encoded.sizes.push_back(size);
  }
  if (left == 0) return {};
  return corrupt_index(
      fmt::format("region '{}': {} bytes stored behind its blocks", printable(region.name), left));
}

void encode_region(const Region& region, std::uint32_t format_version, Writer& writer) {
  writer.u64(region.offset);
  writer.u64(region.stored_bytes);
  writer.u64(region.element_bytes);
  writer.u64(region.count);
  writer.u64(region.block_checksums.size());
  writer.u32(static_cast<std::uint32_t>(region.type));
  writer.u32(static_cast<std::uint32_t>(region.encoding));
  writer.u32(static_cast<std::uint32_t>(region.place.size()));
  writer.u32(static_cast<std::uint32_t>(region.name.size()));
  writer.text(region.name);
  for (const BlockDim& dim : region.place) {
    writer.u64(dim.shape);
    writer.u64(dim.global_shape);
    writer.u64(dim.start);
  }
  if (format_version > 1) encode_compression(region, writer);
  for (const std::uint64_t checksum : region.block_checksums) writer.u64(checksum);
}

Status decode_region(Reader& reader, const ImageHeader& header, std::uint64_t* end,
                     Region& region) {
  region.offset = reader.u64();
  region.stored_bytes = reader.u64();
  region.element_bytes = reader.u64();
  region.count = reader.u64();
  const std::uint64_t blocks = reader.u64();
  region.type = static_cast<ElementType>(reader.u32());
  region.encoding = static_cast<Encoding>(reader.u32());
  const std::uint32_t dims = reader.u32();
  const std::uint32_t name_bytes = reader.u32();
  if (name_bytes > kMaxRegionNameBytes)
    return corrupt_index(fmt::format("region name of {} bytes", name_bytes));
  region.name = reader.text(name_bytes);
  if (dims > kMaxDims) return corrupt_index(fmt::format("region of {} dimensions", dims));
  region.place.reserve(dims);
  for (std::uint32_t i = 0; i < dims; ++i) {
    const std::uint64_t shape = reader.u64(), global_shape = reader.u64();
    region.place.push_back({shape, global_shape, reader.u64()});
  }
  if (header.format_version > 1) DIAPAUSE_TRY(decode_compression(reader, blocks, region));
  if (!reader.ok()) return corrupt_index("ends inside a region");
  DIAPAUSE_TRY(check_description(region, Code::corrupt));
  DIAPAUSE_TRY(check_location(region, header, end));
  if (blocks != region.block_count() || !reader.has_items(blocks, sizeof(std::uint64_t))) {
    return corrupt_index(
        fmt::format("region '{}': {} bytes stored, {} checksums announced, {} bytes of index left",
                    printable(region.name), region.stored_bytes, blocks, reader.remaining()));
  }
  region.block_checksums.reserve(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) region.block_checksums.push_back(reader.u64());
  return {};
}

}  // namespace

ByteVector encode_header(const ImageHeader& header) {
  Writer writer(kHeaderBytes);
  writer.text(kHeaderMagic);
  writer.u32(header.format_version);
  writer.u32(static_cast<std::uint32_t>(header.kind));
  writer.u32(header.owner);
  writer.u32(header.part);
  writer.u32(header.rank_count);
  writer.u32(header.version.incarnation);
  writer.u64(header.version.number);
  writer.commit(header.version.commit);
  writer.u64(header.file_bytes);
  writer.u64(header.index_offset);
  writer.u64(header.index_bytes);
  writer.digest(header.index_digest);
  writer.zeros_up_to(kHeaderChecksumOffset);
  writer.u64(checksum64(writer.written()));
  return writer.take();
}

Result<ImageHeader> decode_header(ByteView data) {
  if (data.size() < kHeaderBytes) {
    return corrupt_header(fmt::format("{} bytes where {} are needed", data.size(), kHeaderBytes));
  }
  Reader reader(data.first(kHeaderChecksumOffset));
  if (reader.text(kHeaderMagic.size()) != kHeaderMagic)
    return corrupt_header("this is not a Diapause image");
  const std::uint64_t stored = Reader(data.subspan(kHeaderChecksumOffset, 8)).u64();
  const std::uint64_t computed = checksum64(data.first(kHeaderChecksumOffset));
  if (stored != computed) {
    return corrupt_header(
        fmt::format("checksum is {:016x}, its bytes give {:016x}", stored, computed));
  }
  const std::uint32_t version = reader.u32();
  if (version == 0 || version > kImageFormatVersion) {
    return fail(Code::mismatch, fmt::format("image header: written in format version {}, this "
                                            "library reads versions 1 to {}; restart "
                                            "with the Diapause release that wrote it",
                                            version, kImageFormatVersion));
  }
  ImageHeader header;
  header.format_version = version;
  header.kind = static_cast<ImageKind>(reader.u32());
  header.owner = reader.u32();
  header.part = reader.u32();
  header.rank_count = reader.u32();
  header.version.incarnation = reader.u32();
  header.version.number = reader.u64();
  header.version.commit = reader.commit();
  header.file_bytes = reader.u64();
  header.index_offset = reader.u64();
  header.index_bytes = reader.u64();
  header.index_digest = reader.digest();
  const ByteView unused = reader.take(reader.remaining());
  if (std::any_of(unused.begin(), unused.end(), [](std::byte b) { return b != std::byte{0}; })) {
    return corrupt_header("unused bytes are not zero");
  }
  DIAPAUSE_TRY(check_header(header));
  return header;
}

std::uint64_t element_bytes_of(ElementType type) {
  static constexpr std::uint8_t kBytes[kElementTypes] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  const auto index = static_cast<std::uint32_t>(type);
  return index < kElementTypes ? kBytes[index] : 0;
}

const char* element_type_name(ElementType type) {
  static constexpr const char* kNames[kElementTypes] = {"bytes",  "int8",    "uint8",  "int16",
                                                        "uint16", "int32",   "uint32", "int64",
                                                        "uint64", "float32", "float64"};
  const auto index = static_cast<std::uint32_t>(type);
  return index < kElementTypes ? kNames[index] : "unknown";
}

bool is_packed(const ImageIndex& index) {
  const auto small = std::ranges::count_if(index.regions, [](const Region& region) {
    return region.raw_bytes() > 0 && region.raw_bytes() < kPageBytes;
  });
  return static_cast<std::size_t>(small) >= kPackedFrom;
}

std::uint64_t alignment_of(const Region& region, bool is_packed) {
  return is_packed && region.raw_bytes() < kPageBytes ? kPackedBytes : kPageBytes;
}

std::uint32_t format_version_of(const ImageIndex& index) {
  bool is_plain = true;
  for (const Region& region : index.regions) {
    if (region.offset % kPageBytes != 0) return 3;
    is_plain = is_plain && region.is_raw() && region.compression == Compression{};
  }
  return is_plain ? 1 : 2;
}

ByteVector encode_index(const ImageIndex& index) {
  const std::uint32_t format_version = format_version_of(index);
  Writer writer(encoded_index_bytes(index));
  writer.text(kIndexMagic);
  writer.u64(index.regions.size());
  for (const Region& region : index.regions) encode_region(region, format_version, writer);
  return writer.take();
}

Result<ImageIndex> decode_index(ByteView data, const ImageHeader& header) {
  if (data.size() != header.index_bytes) {
    return corrupt_index(
        fmt::format("{} bytes where the header says {}", data.size(), header.index_bytes));
  }
  if (digest128(data) != header.index_digest)
    return corrupt_index("its digest is not the one in the header");
  Reader reader(data);
  if (reader.text(kIndexMagic.size()) != kIndexMagic)
    return corrupt_index("does not begin with its magic number");
  const std::uint64_t count = reader.u64();
  if (!reader.ok() || !reader.has_items(count, kRegionFixedBytes)) {
    return corrupt_index(fmt::format("{} regions in {} bytes", count, data.size()));
  }
  ImageIndex index;
  index.regions.reserve(count);
  std::uint64_t end = kHeaderBytes;
  for (std::uint64_t i = 0; i < count; ++i)
    DIAPAUSE_TRY(decode_region(reader, header, &end, index.regions.emplace_back()));
  if (reader.remaining() != 0)
    return corrupt_index(fmt::format("{} bytes behind its end", reader.remaining()));
  DIAPAUSE_TRY(check_names_unique(index.regions, Code::corrupt));
  if (format_version_of(index) != header.format_version) {
    return corrupt_index(fmt::format("format version {} says no more than version {} does",
                                     header.format_version, format_version_of(index)));
  }
  return index;
}

Result<std::uint64_t> lay_out(ImageIndex& index) {
  DIAPAUSE_TRY(check_names_unique(index.regions, Code::argument));
  const bool packs = is_packed(index);
  std::uint64_t end = kHeaderBytes;
  for (Region& region : index.regions) {
    DIAPAUSE_TRY(check_description(region, Code::argument));
    if (region.is_raw()) region.stored_bytes = region.raw_bytes();
    region.offset = round_up(end, alignment_of(region, packs));
    end = region.offset + region.stored_bytes;
    if (round_up(end, kPageBytes) > kMaxFileBytes) {
      return fail(
          Code::argument,
          fmt::format("region '{}': the image would grow beyond 2^63 bytes; {} bytes are asked",
                      printable(region.name), region.stored_bytes));
    }
  }
  for (Region& region : index.regions) region.block_checksums.resize(region.block_count());
  return round_up(end, kPageBytes);
}

std::uint64_t encoded_index_bytes(const ImageIndex& index) {
  const std::uint64_t compression = format_version_of(index) > 1 ? kCompressionBytes : 0;
  std::uint64_t bytes = kIndexFixedBytes;
  for (const Region& region : index.regions) {
    bytes += kRegionFixedBytes + region.name.size() + region.place.size() * kDimBytes +
             compression + region.block_count() * sizeof(std::uint64_t);
    if (!region.is_raw())
      bytes += kEncodedFixedBytes + region.encoded.sizes.size() * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace diapause::format
