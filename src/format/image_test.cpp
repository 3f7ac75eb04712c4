#include "format/image.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "format/checksum.hpp"
#include "format/test_bytes.hpp"
#include "support/value_of.hpp"

namespace diapause::format {
namespace {

using testing::HasSubstr;

struct Image {
  ImageHeader header;
  ImageIndex index;
  ByteVector index_bytes;
};

// Encodes the index as it is, sound or not, with a header that matches it.
Image seal(ImageIndex index, std::uint64_t index_offset) {
  Image image;
  image.index = std::move(index);
  image.index_bytes = encode_index(image.index);
  image.header.format_version = format_version_of(image.index);
  image.header.version = {7, 1200, {}};
  for (std::uint8_t i = 0; i < 16; ++i) image.header.version.commit.bytes[i] = i;
  image.header.owner = 2;
  image.header.rank_count = 4;
  image.header.index_offset = index_offset;
  image.header.index_bytes = image.index_bytes.size();
  image.header.file_bytes = index_offset + image.index_bytes.size();
  image.header.index_digest = digest128(image.index_bytes);
  return image;
}

Image lay_out_and_seal(ImageIndex index) {
  const std::uint64_t offset = test_support::value_of(lay_out(index));
  for (Region& region : index.regions) {
    std::uint64_t value = region.offset;
    for (std::uint64_t& checksum : region.block_checksums) checksum = value += 0x9e3779b97f4a7c15;
  }
  return seal(std::move(index), offset);
}

Region region_of(std::string name, ElementType type, std::uint64_t count) {
  Region region;
  region.name = std::move(name);
  region.type = type;
  region.element_bytes = type == ElementType::bytes ? 48 : element_bytes_of(type);
  region.count = count;
  return region;
}

Image small_image() {
  Region grid = region_of("grid", ElementType::float64, 6);
  grid.place = {{2, 4, 2}, {3, 9, 6}};
  return lay_out_and_seal({{grid, region_of("particles", ElementType::bytes, 100000)}});
}

Result<ImageIndex> decode(const Image& image) {
  return decode_index(image.index_bytes, image.header);
}

// Returns what decode_index says of the small image after `change` has modified its index.
std::string refusal(const std::function<void(ImageIndex&)>& change) {
  Image image = small_image();
  const std::uint64_t index_offset = image.header.index_offset;
  change(image.index);
  const auto decoded = decode(seal(image.index, index_offset));
  if (decoded) return "";
  EXPECT_EQ(decoded.error().code, Code::corrupt);
  return decoded.error().message;
}

std::string header_refusal(const std::function<void(ImageHeader&)>& change) {
  ImageHeader header = small_image().header;
  change(header);
  const auto decoded = decode_header(encode_header(header));
  if (decoded) return "";
  EXPECT_EQ(decoded.error().code, Code::corrupt);
  return decoded.error().message;
}

// Overwrites a number at `offset` of the small image's index, and seals the image again.
std::string refusal_of_number(std::size_t offset, std::uint64_t value, std::size_t size) {
  Image image = small_image();
  put(image.index_bytes, offset, value, size);
  image.header.index_digest = digest128(image.index_bytes);
  const auto decoded = decode(image);
  return decoded ? "" : decoded.error().message;
}

TEST(ImageHeader, SurvivesARoundTrip) {
  const ImageHeader header = small_image().header;
  const ByteVector bytes = encode_header(header);
  EXPECT_EQ(bytes.size(), kHeaderBytes);
  const auto decoded = decode_header(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, header);
}

TEST(ImageHeader, IsReadFromTheFrontOfALongerFile) {
  ByteVector bytes = encode_header(small_image().header);
  bytes.resize(3 * kHeaderBytes, std::byte{0xee});
  EXPECT_TRUE(decode_header(bytes));
}

TEST(ImageHeader, RefusesEverySingleBitFlip) {
  ByteVector bytes = encode_header(small_image().header);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    bytes[bit / 8] ^= mask;
    const auto decoded = decode_header(bytes);
    ASSERT_FALSE(decoded) << "bit " << bit;
    ASSERT_EQ(decoded.error().code, Code::corrupt) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST(ImageHeader, RefusesEveryTruncation) {
  const ByteVector bytes = encode_header(small_image().header);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(decode_header(ByteView(bytes).first(length))) << length;
  }
}

TEST(ImageHeader, OfAnotherFormatVersionNamesBothVersions) {
  ByteVector bytes = encode_header(small_image().header);
  bytes[8] = std::byte{9};
  put(bytes, kHeaderBytes - 8, checksum64(ByteView(bytes).first(kHeaderBytes - 8)), 8);
  const auto decoded = decode_header(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::mismatch);
  EXPECT_THAT(decoded.error().message, HasSubstr("format version 9"));
  EXPECT_THAT(decoded.error().message, HasSubstr("reads versions 1 to 3"));
}

TEST(ImageHeader, RefusesAnotherMagicNumber) {
  ByteVector bytes = encode_header(small_image().header);
  put(bytes, 0, 'X', 1);
  put(bytes, kHeaderBytes - 8, checksum64(ByteView(bytes).first(kHeaderBytes - 8)), 8);
  EXPECT_THAT(decode_header(bytes).error().message, HasSubstr("not a Diapause image"));
}

TEST(ImageHeader, RefusesFieldsThatCannotBe) {
  EXPECT_THAT(header_refusal([](auto& h) { h.kind = ImageKind{3}; }), HasSubstr("unknown kind 3"));
  EXPECT_THAT(header_refusal([](auto& h) { h.kind = ImageKind{0}; }), HasSubstr("unknown kind 0"));
  EXPECT_THAT(header_refusal([](auto& h) { h.rank_count = 0; }), HasSubstr("number of ranks"));
  EXPECT_THAT(header_refusal([](auto& h) { h.owner = 4; }), HasSubstr("rank 4 of 4"));
  EXPECT_THAT(header_refusal([](auto& h) { h.version.number = UINT64_MAX; }),
              HasSubstr("version number"));
}

TEST(ImageHeader, RefusesAnIndexOutsideTheFile) {
  EXPECT_THAT(header_refusal([](auto& h) { h.index_offset += 1; }), HasSubstr("index at byte"));
  EXPECT_THAT(header_refusal([](auto& h) { h.index_offset = 0; }), HasSubstr("index at byte 0"));
  EXPECT_THAT(header_refusal([](auto& h) { h.file_bytes -= 1; }), HasSubstr("of a file of"));
  EXPECT_THAT(header_refusal([](auto& h) { h.index_bytes = UINT64_MAX; }),
              HasSubstr("of a file of"));
  EXPECT_THAT(header_refusal([](auto& h) { h.index_offset = 0 - kPageBytes; }),
              HasSubstr("of a file of"));
  EXPECT_THAT(header_refusal([](auto& h) { h.file_bytes = 1ULL << 63; }), HasSubstr("file of"));
}

TEST(ImageHeader, RefusesBytesThatTheFormatDoesNotUse) {
  ByteVector bytes = encode_header(small_image().header);
  bytes[2000] = std::byte{1};
  put(bytes, kHeaderBytes - 8, checksum64(ByteView(bytes).first(kHeaderBytes - 8)), 8);
  EXPECT_FALSE(decode_header(bytes));
}

TEST(ImageIndex, SurvivesARoundTrip) {
  const Image image = small_image();
  const auto decoded = decode(image);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, image.index);
}

TEST(ImageIndex, WithoutRegionsSurvivesARoundTrip) {
  const auto decoded = decode(lay_out_and_seal({}));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(decoded->regions.empty());
}

TEST(ImageIndex, OfHundredsOfRegionsOfAllTypesSurvivesARoundTrip) {
  ImageIndex index;
  for (std::uint32_t i = 0; i < 700; ++i) {
    index.regions.push_back(
        region_of(fmt::format("r{}", i), ElementType{i % kElementTypes}, i % 3 * 200000));
  }
  const Image image = lay_out_and_seal(index);
  const auto decoded = decode(image);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, image.index);
}

TEST(ImageIndex, KeepsEightDimensionsAndEmptyBlocks) {
  Region eight = region_of("eight", ElementType::int32, 256);
  Region empty = region_of("empty", ElementType::int32, 0);
  const std::uint64_t far = 1ULL << 40;
  for (std::uint64_t i = 0; i < kMaxDims; ++i) eight.place.push_back({2, far, far - 2});
  for (std::uint64_t i = 0; i < 3; ++i) empty.place.push_back({i == 1 ? 0 : far, far, 0});
  const Image image = lay_out_and_seal({{eight, empty}});
  const auto decoded = decode(image);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, image.index);
}

TEST(ImageIndex, AllowsANameOfAny255Bytes) {
  const Image image =
      lay_out_and_seal({{region_of(std::string(255, '\xff'), ElementType::uint8, 1)}});
  EXPECT_TRUE(decode(image));
}

TEST(ImageIndex, RefusesEverySingleBitFlip) {
  Image image = small_image();
  for (std::size_t bit = 0; bit < image.index_bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    image.index_bytes[bit / 8] ^= mask;
    ASSERT_FALSE(decode(image)) << "bit " << bit;
    image.index_bytes[bit / 8] ^= mask;
  }
}

// The length and the digest are made to fit, so that the decoder itself has to notice.
TEST(ImageIndex, RefusesEveryTruncationEvenIfSealed) {
  Image image = small_image();
  while (!image.index_bytes.empty()) {
    image.index_bytes.pop_back();
    image.header.index_bytes = image.index_bytes.size();
    image.header.index_digest = digest128(image.index_bytes);
    ASSERT_FALSE(decode(image)) << image.index_bytes.size();
  }
}

TEST(ImageIndex, RefusesTrailingBytes) {
  Image image = small_image();
  image.index_bytes.push_back(std::byte{0});
  EXPECT_THAT(decode(image).error().message, HasSubstr("where the header says"));
  image.header.index_bytes = image.index_bytes.size();
  image.header.index_digest = digest128(image.index_bytes);
  EXPECT_THAT(decode(image).error().message, HasSubstr("1 bytes behind its end"));
}

TEST(ImageIndex, RefusesAnotherMagicNumber) {
  EXPECT_THAT(refusal_of_number(0, 'X', 1), HasSubstr("magic number"));
}

TEST(ImageIndex, RefusesHostileCounts) {
  EXPECT_THAT(refusal_of_number(8, UINT64_MAX / 56, 8),
              HasSubstr("regions in"));                                   // number of regions
  EXPECT_THAT(refusal_of_number(8, 3, 8), HasSubstr("inside a region"));  // one more than there are
  EXPECT_THAT(refusal_of_number(48, UINT64_MAX, 8),
              HasSubstr("checksums announced"));  // checksums of region 0
  EXPECT_THAT(refusal_of_number(64, 0xffffffff, 4), HasSubstr("dimensions"));
  EXPECT_THAT(refusal_of_number(68, 0xffffffff, 4), HasSubstr("name of"));
}

// Region 1 claims to store 2^62 bytes in 2^42 blocks. Everything but the length of the index
// agrees.
TEST(ImageIndex, RefusesMoreChecksumsThanItHasBytes) {
  Image image = small_image();
  constexpr std::size_t kRegion1 = 132;
  put(image.index_bytes, kRegion1 + 8, 1ULL << 62, 8);
  put(image.index_bytes, kRegion1 + 16, 1, 8);
  put(image.index_bytes, kRegion1 + 24, 1ULL << 62, 8);
  put(image.index_bytes, kRegion1 + 32, 1ULL << 42, 8);
  image.header.index_offset = 1ULL << 62 | 1ULL << 20;
  image.header.index_digest = digest128(image.index_bytes);
  const auto decoded = decode(image);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().message,
              HasSubstr("4398046511104 checksums announced, 40 bytes of index left"));
}

TEST(ImageIndex, RefusesUnsoundNames) {
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].name = ""; }), HasSubstr("region name"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].name = std::string("a\0b", 3); }),
              HasSubstr("region name"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].name = std::string(256, 'a'); }),
              HasSubstr("name of 256"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].name = "particles"; }), HasSubstr("two regions"));
}

TEST(ImageIndex, KeepsControlCharactersOutOfMessages) {
  const std::string message = refusal([](auto& i) {
    i.regions[0].name = "a\x1b[2J";
    i.regions[0].encoding = static_cast<Encoding>(7);
  });
  EXPECT_THAT(message, HasSubstr("'a?[2J': unknown encoding 7"));
}

TEST(ImageIndex, RefusesElementsThatDoNotFitTheirType) {
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].type = ElementType{11}; }),
              HasSubstr("element type 11"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].element_bytes = 4; }),
              HasSubstr("do not fit type float64"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].element_bytes = 0; }),
              HasSubstr("do not fit type bytes"));
}

TEST(ImageIndex, RefusesSizesThatDoNotAgree) {
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].stored_bytes += 1; }),
              HasSubstr("bytes stored for"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].count = 1ULL << 60; }), HasSubstr("too many"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].block_checksums.pop_back(); }),
              HasSubstr("checksums announced"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].block_checksums.push_back(1); }),
              HasSubstr("checksums announced"));
}

TEST(ImageIndex, RefusesRegionsThatOverlapOrLieOutside) {
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].offset += 8; }), HasSubstr("do not fit between"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].offset = 0; }), HasSubstr("do not fit between"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].offset = i.regions[0].offset; }),
              HasSubstr("do not fit between"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].offset += kPageBytes; }),
              HasSubstr("do not fit between"));
  EXPECT_THAT(refusal([](auto& i) { i.regions[1].offset = 0 - kPageBytes; }),
              HasSubstr("do not fit between"));
  EXPECT_THAT(refusal([](auto& i) { std::swap(i.regions[0], i.regions[1]); }),
              HasSubstr("do not fit between"));
}

TEST(ImageIndex, RefusesAPlaceOutsideTheGlobalArray) {
  const std::string unsound = "do not describe a block of 6 elements";
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].place[0].start = 3; }), HasSubstr(unsound));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].place[0].start = UINT64_MAX; }),
              HasSubstr(unsound));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].place[1].global_shape = 2; }), HasSubstr(unsound));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].place.pop_back(); }), HasSubstr(unsound));
  EXPECT_THAT(refusal([](auto& i) { i.regions[0].place[0] = {0, 4, 0}; }), HasSubstr(unsound));
  EXPECT_THAT(refusal([](auto& i) {
                i.regions[0].place.resize(9, {1, 1, 0});
              }),
              HasSubstr("of 9 dimensions"));
}

TEST(ImageIndex, RefusesAPlaceWhoseShapeWrapsToTheCount) {
  const std::uint64_t big = UINT64_MAX;
  const std::uint64_t inverse_of_3 = 0xaaaaaaaaaaaaaaab;  // 3 times it is 1 modulo 2^64
  EXPECT_THAT(refusal([&](auto& i) {
                i.regions[0].place = {{18, big, 0}, {inverse_of_3, big, 0}};
              }),
              HasSubstr("do not describe"));
}

TEST(ImageIndex, RefusesAnotherIndexWithASoundDigestOfItsOwn) {
  const Image image = small_image();
  Image other = lay_out_and_seal({{region_of("other", ElementType::int8, 5)}});
  other.header.index_digest = image.header.index_digest;
  EXPECT_THAT(decode(other).error().message, HasSubstr("digest"));
}

TEST(LayOut, PutsEveryRegionOnAPageOfItsOwn) {
  ImageIndex index{{region_of("a", ElementType::int8, 1), region_of("none", ElementType::int8, 0),
                    region_of("b", ElementType::float64, 512),
                    region_of("c", ElementType::int8, kBlockBytes + 1)}};
  const auto end = lay_out(index);
  ASSERT_TRUE(end);
  EXPECT_EQ(index.regions[0].offset, 4096u);
  EXPECT_EQ(index.regions[1].offset, 8192u);
  EXPECT_EQ(index.regions[2].offset, 8192u);
  EXPECT_EQ(index.regions[3].offset, 12288u);
  EXPECT_EQ(*end, 12288u + kBlockBytes + 4096u);
  EXPECT_EQ(index.regions[1].block_checksums.size(), 0u);
  EXPECT_EQ(index.regions[2].block_checksums.size(), 1u);
  EXPECT_EQ(index.regions[3].block_checksums.size(), 2u);
}

ImageIndex many_small(std::size_t count, std::uint64_t bytes) {
  ImageIndex index;
  for (std::size_t i = 0; i < count; ++i) {
    index.regions.push_back(region_of(fmt::format("r{}", i), ElementType::int8, bytes));
  }
  return index;
}

TEST(LayOut, LetsManySmallRegionsSharePages) {
  ImageIndex index = many_small(kPackedFrom, 65);
  index.regions.push_back(region_of("page", ElementType::int8, kPageBytes));
  index.regions.push_back(region_of("last", ElementType::int8, 1));
  const std::uint64_t end = test_support::value_of(lay_out(index));
  for (std::size_t i = 0; i < kPackedFrom; ++i)
    EXPECT_EQ(index.regions[i].offset, kHeaderBytes + 128 * i);
  const std::uint64_t page = round_up(kHeaderBytes + 128 * kPackedFrom, kPageBytes);
  EXPECT_EQ(index.regions[kPackedFrom].offset, page);
  EXPECT_EQ(index.regions[kPackedFrom + 1].offset, page + kPageBytes);
  EXPECT_EQ(end, page + 2 * kPageBytes);
  EXPECT_EQ(format_version_of(index), 3u);
}

TEST(LayOut, LeavesFewSmallRegionsWhereOlderReleasesFindThem) {
  ImageIndex few = many_small(kPackedFrom - 1, 8);
  EXPECT_EQ(test_support::value_of(lay_out(few)), kPackedFrom * kPageBytes);
  EXPECT_EQ(format_version_of(few), 1u);
  ImageIndex large = many_small(kPackedFrom, kPageBytes);
  EXPECT_TRUE(lay_out(large));
  EXPECT_EQ(format_version_of(large), 1u);
}

TEST(PackedImage, SurvivesARoundTripAndNamesItsFormatVersion) {
  ImageIndex index = many_small(100, 24);
  index.regions[7].compression = {1, 0};
  const Image image = lay_out_and_seal(index);
  EXPECT_EQ(image.header.format_version, 3u);
  EXPECT_EQ(image.index_bytes.size(), encoded_index_bytes(image.index));
  const auto decoded = decode(image);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, image.index);
}

TEST(PackedImage, IsRefusedWhereItsRegionsOverlapOrBeginAnywhere) {
  const Image image = lay_out_and_seal(many_small(100, 100));
  const auto refusal_of_offset = [&](std::uint64_t offset) {
    ImageIndex index = image.index;
    index.regions[50].offset = offset;
    const auto decoded = decode(seal(index, image.header.index_offset));
    return decoded ? "" : decoded.error().message;
  };
  const std::uint64_t sound = image.index.regions[50].offset;
  EXPECT_EQ(refusal_of_offset(sound), "");
  EXPECT_THAT(refusal_of_offset(sound - kPackedBytes), HasSubstr("do not fit between"));
  EXPECT_THAT(refusal_of_offset(sound + 8), HasSubstr("do not fit between"));
  Image of_version_1 = image;
  of_version_1.header.format_version = 1;
  EXPECT_FALSE(decode(of_version_1));
}

TEST(LayOut, TellsTheSizeOfTheIndexBeforeTheChecksumsAreKnown) {
  const Image image = small_image();
  ImageIndex index = image.index;
  for (Region& region : index.regions) region.block_checksums.clear();
  EXPECT_EQ(encoded_index_bytes(index), image.index_bytes.size());
}

TEST(LayOut, RefusesSizesThatOverflow) {
  const auto code_of = [](ImageIndex index) {
    const auto offset = lay_out(index);
    return offset ? Code{0} : offset.error().code;
  };
  EXPECT_EQ(code_of({{region_of("a", ElementType::float64, 1ULL << 61)}}), Code::argument);
  EXPECT_EQ(code_of({{region_of("a", ElementType::float64, 1ULL << 60)}}), Code::argument);
  EXPECT_EQ(code_of({{region_of("a", ElementType::int8, (1ULL << 63) - 1)}}), Code::argument);
  EXPECT_EQ(code_of({{region_of("a", ElementType::int8, 1ULL << 62),
                      region_of("b", ElementType::int8, 1ULL << 62)}}),
            Code::argument);
  EXPECT_EQ(code_of({{region_of("a", ElementType::int8, UINT64_MAX)}}),
            Code::argument);  // ends at byte 4095 if it wraps
  constexpr std::uint64_t kMost = (1ULL << 63) - 1;
  EXPECT_EQ(code_of({{region_of("a", ElementType::int8, kMost - 8191),
                      region_of("b", ElementType::int8, kMost)}}),
            Code::argument);
}

TEST(LayOut, RefusesWhatNobodyCouldReadAgain) {
  ImageIndex twice{{region_of("a", ElementType::int8, 1), region_of("a", ElementType::int8, 1)}};
  EXPECT_EQ(lay_out(twice).error().code, Code::argument);
  ImageIndex no_name{{region_of("", ElementType::int8, 1)}};
  EXPECT_EQ(lay_out(no_name).error().code, Code::argument);
}

TEST(ElementType, HasANameAndASize) {
  EXPECT_STREQ(element_type_name(ElementType::float64), "float64");
  EXPECT_EQ(element_bytes_of(ElementType::float64), 8u);
  EXPECT_EQ(element_bytes_of(ElementType::uint16), 2u);
  EXPECT_EQ(element_bytes_of(ElementType::bytes), 0u);
  EXPECT_STREQ(element_type_name(ElementType{99}), "unknown");
}

// A region of 300 000 doubles in three compressed blocks of which one was stored without loss.
Image compressed_image() {
  Region field = region_of("field", ElementType::float64, 300'000);
  field.encoding = Encoding::blocks;
  field.compression = {3, 1e-3};
  field.encoded = {{5000, 7000, 900}, 2, 1, 0.9e-3};
  field.stored_bytes = 12'900;
  return lay_out_and_seal({{field, region_of("step", ElementType::uint64, 1)}});
}

std::string compression_refusal(const std::function<void(Region&)>& change) {
  Image image = compressed_image();
  const std::uint64_t index_offset = image.header.index_offset;
  change(image.index.regions[0]);
  const auto decoded = decode(seal(image.index, index_offset));
  if (decoded) return "";
  EXPECT_EQ(decoded.error().code, Code::corrupt);
  return decoded.error().message;
}

TEST(CompressedImage, ComesBackAsItWasDescribed) {
  const Image image = compressed_image();
  EXPECT_EQ(image.header.format_version, 2u);
  EXPECT_EQ(decode_header(encode_header(image.header)).value(), image.header);
  EXPECT_EQ(decode(image).value(), image.index);
  EXPECT_EQ(image.index_bytes.size(), encoded_index_bytes(image.index));
  EXPECT_EQ(image.header.index_offset, kHeaderBytes + round_up(12'900, kPageBytes) + kPageBytes);
}

TEST(CompressedImage, IsRefusedWhereItsBlocksAreNotSound) {
  EXPECT_THAT(compression_refusal([](Region& r) {
                r.encoded.sizes = {5000, 7000, 901};
              }),
              HasSubstr("compressed block 2 of 901 bytes"));
  EXPECT_THAT(compression_refusal([](Region& r) {
                r.encoded.sizes = {5000, 7000, 899};
              }),
              HasSubstr("1 bytes stored behind its blocks"));
  EXPECT_THAT(compression_refusal([](Region& r) {
                r.encoded.sizes = {5000, 0, 7900};
              }),
              HasSubstr("of 0 bytes"));
  EXPECT_THAT(compression_refusal([](Region& r) { r.encoded.fallen_back = 2; }),
              HasSubstr("does not fit"));
  EXPECT_THAT(compression_refusal([](Region& r) { r.encoding = static_cast<Encoding>(2); }),
              HasSubstr("unknown encoding 2"));
}

TEST(CompressedImage, IsRefusedWithABoundThatIsNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bound :
       {-1e-3, -0.0, nan, std::numeric_limits<double>::infinity(), 1e-310, 0.0}) {
    EXPECT_THAT(compression_refusal([&](Region& r) { r.compression.bound = bound; }),
                HasSubstr("does not fit"))
        << bound;
  }
  EXPECT_THAT(compression_refusal([&](Region& r) { r.encoded.greatest_error = nan; }),
              HasSubstr("does not fit"));
  EXPECT_THAT(compression_refusal([](Region& r) { r.encoded.greatest_error = 1.1e-3; }),
              HasSubstr("does not fit"));
  EXPECT_THAT(compression_refusal([](Region& r) { r.type = ElementType::int64; }),
              HasSubstr("does not fit"));
  EXPECT_THAT(compression_refusal([](Region& r) { r.compression.codec = 0; }),
              HasSubstr("does not fit"));
}

TEST(CompressedImage, IsNotCalledSoWithoutNeed) {
  Image image = small_image();
  EXPECT_EQ(image.header.format_version, 1u);
  image.header.format_version = 2;
  EXPECT_FALSE(decode(image));
}

}  // namespace
}  // namespace diapause::format
