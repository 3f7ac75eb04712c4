// The committed files, the program that makes them and the examples in docs/formats all say the
// same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codec/block_coder.hpp"
#include "format/checksum.hpp"
#include "golden_files.hpp"
#include "hex_dump.hpp"

namespace diapause::golden {
namespace {

using namespace diapause::format;
using testing::HasSubstr;

const std::filesystem::path kRoot = DIAPAUSE_SOURCE_ROOT;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

ByteVector committed(const std::string& name) {
  const std::string text = text_of(kRoot / name);
  const ByteView bytes = as_byte_view(text);
  return {bytes.begin(), bytes.end()};
}

ByteVector golden(const std::string& name) { return committed("tests/golden/files/" + name); }

// Header, index and the data of all regions, checked as a reader would.
Result<ImageIndex> read_image(const ByteVector& file, ImageHeader* header) {
  DIAPAUSE_TRY_ASSIGN(*header, decode_header(file));
  DIAPAUSE_TRY_ASSIGN(
      ImageIndex index,
      decode_index(ByteView(file).subspan(header->index_offset, header->index_bytes), *header));
  for (const Region& region : index.regions) {
    const ByteView data = ByteView(file).subspan(region.offset, region.stored_bytes);
    if (region.block_checksums != std::vector{checksum64(data)})
      return fail(Code::corrupt, region.name);
  }
  return index;
}

TEST(GoldenFiles, AreWhatTheLibraryWritesToday) {
  for (const auto& [name, content] : all_files())
    EXPECT_TRUE(committed(name) == content) << name << " differs";
}

TEST(GoldenFiles, AreAllMadeByTheProgram) {
  const auto made = all_files();
  for (const char* folder :
       {"tests/golden/files", "fuzz/corpus/image_header", "fuzz/corpus/image_index",
        "fuzz/corpus/manifest", "fuzz/corpus/identity", "fuzz/corpus/starts", "fuzz/corpus/block",
        "fuzz/corpus/payload"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder)) {
      const std::string name = std::filesystem::relative(entry.path(), kRoot).generic_string();
      EXPECT_TRUE(made.contains(name)) << name << " is not made by make_golden";
    }
  }
}

TEST(GoldenFiles, AreSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "tests/golden/files"))
    bytes += entry.file_size();
  EXPECT_LT(bytes, 192u * 1024);
}

TEST(GoldenFiles, HoldAnImageOfFormatVersion1) {
  ImageHeader header;
  const auto index = read_image(golden("image-v1.bin"), &header);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(header.kind, ImageKind::data);
  EXPECT_EQ(header.version.incarnation, 3u);
  EXPECT_EQ(header.version.number, 1200u);
  EXPECT_EQ(header.version.commit.hex(), "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
  EXPECT_EQ(header.owner, 2u);
  EXPECT_EQ(header.rank_count, 5u);
  ASSERT_EQ(index->regions.size(), 2u);
  EXPECT_EQ(index->regions[0].name, "temperature");
  EXPECT_EQ(index->regions[0].type, ElementType::float64);
  EXPECT_EQ(index->regions[0].place, (std::vector<BlockDim>{{2, 4, 2}, {3, 9, 6}}));
  EXPECT_EQ(index->regions[1].name, "step");
  EXPECT_EQ(index->regions[1].count, 1u);
}

TEST(GoldenFiles, HoldAnImageOfFormatVersion3WhoseRegionsSharePages) {
  ImageHeader header;
  const auto index = read_image(golden("image-v3.bin"), &header);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(header.format_version, 3u);
  ASSERT_EQ(index->regions.size(), 64u);
  EXPECT_EQ(index->regions[5].name, "step5");
  EXPECT_EQ(index->regions[5].offset, kHeaderBytes + 5 * 64);
}

TEST(GoldenFiles, HoldAParityImageOfFormatVersion1) {
  ImageHeader header;
  const auto index = read_image(golden("parity-v1.bin"), &header);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(header.kind, ImageKind::parity);
  EXPECT_EQ(header.owner, 1u);
  EXPECT_EQ(header.part, 0u);
}

TEST(GoldenFiles, HoldAManifestOfFormatVersion1) {
  const auto read = decode_manifest(golden("manifest-v1.bin"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, manifest());
}

TEST(GoldenFiles, HoldAnIdentityOfFormatVersion1) {
  const auto read = decode_identity(golden("identity-v1.bin"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, identity());
  EXPECT_TRUE(parse_hex_dump(text_of(kRoot / "docs/formats/identity.md")) ==
              golden("identity-v1.bin"));
}

TEST(GoldenFiles, HoldBrokenIdentitiesThatAreRefused) {
  for (const char* what : {"truncated", "flipped", "magic"}) {
    const auto read = decode_identity(golden("broken-identity-" + std::string(what) + ".bin"));
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.error().code, Code::corrupt) << what;
  }
  EXPECT_EQ(decode_identity(golden("broken-identity-future.bin")).error().code, Code::mismatch);
}

TEST(GoldenFiles, HoldStartsOfFormatVersion1) {
  const auto read = decode_starts(golden("starts-v1.bin"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, starts());
  EXPECT_TRUE(parse_hex_dump(text_of(kRoot / "docs/formats/starts.md")) == golden("starts-v1.bin"));
}

TEST(GoldenFiles, HoldBrokenStartsThatAreRefused) {
  for (const char* what : {"truncated", "flipped", "magic"}) {
    const auto read = decode_starts(golden("broken-starts-" + std::string(what) + ".bin"));
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.error().code, Code::corrupt) << what;
  }
  EXPECT_EQ(decode_starts(golden("broken-starts-future.bin")).error().code, Code::mismatch);
}

TEST(GoldenFiles, HoldProcessesOfAllFormatVersions) {
  const auto first = process::decode_job(golden("processes-v1.bin"));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(process::encode_job(*first), process::encode_job(processes_of_version_1()));
  const auto second = process::decode_job(golden("processes-v2.bin"));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(process::encode_job(*second), process::encode_job(processes_of_version_2()));
  const auto third = process::decode_job(golden("processes-v3.bin"));
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(process::encode_job(*third), process::encode_job(processes_of_version_3()));
  const auto fourth = process::decode_job(golden("processes-v4.bin"));
  ASSERT_TRUE(fourth) << fourth.error().message;
  EXPECT_EQ(process::encode_job(*fourth), process::encode_job(processes_of_version_4()));
  const auto fifth = process::decode_job(golden("processes-v5.bin"));
  ASSERT_TRUE(fifth) << fifth.error().message;
  EXPECT_EQ(process::encode_job(*fifth), process::encode_job(processes_of_version_5()));
  const auto sixth = process::decode_job(golden("processes-v6.bin"));
  ASSERT_TRUE(sixth) << sixth.error().message;
  EXPECT_EQ(process::encode_job(*sixth), process::encode_job(processes_of_version_6()));
  const auto seventh = process::decode_job(golden("processes-v7.bin"));
  ASSERT_TRUE(seventh) << seventh.error().message;
  EXPECT_EQ(process::encode_job(*seventh), process::encode_job(processes_of_version_7()));
  const auto eighth = process::decode_job(golden("processes-v8.bin"));
  ASSERT_TRUE(eighth) << eighth.error().message;
  EXPECT_EQ(process::encode_job(*eighth), process::encode_job(processes_of_version_8()));
  const auto ninth = process::decode_job(golden("processes-v9.bin"));
  ASSERT_TRUE(ninth) << ninth.error().message;
  EXPECT_EQ(process::encode_job(*ninth), process::encode_job(processes_of_version_9()));
  const auto tenth = process::decode_job(golden("processes-v10.bin"));
  ASSERT_TRUE(tenth) << tenth.error().message;
  EXPECT_EQ(process::encode_job(*tenth), process::encode_job(processes()));
}

TEST(GoldenFiles, HoldBrokenProcessesThatAreRefused) {
  for (const char* what : {"truncated", "flipped"}) {
    const auto read = process::decode_job(golden("broken-processes-" + std::string(what) + ".bin"));
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.error().code, Code::corrupt) << what;
  }
  EXPECT_EQ(process::decode_job(golden("broken-processes-future.bin")).error().code,
            Code::mismatch);
}

TEST(GoldenFiles, HoldManifestsOfFormatVersion2) {
  const auto read = decode_manifest(golden("manifest-v2.bin"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, manifest());
  const auto shared = decode_manifest(golden("manifest-v2-shared.bin"));
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(*shared, shared_manifest());
  EXPECT_EQ(shared->ranks[2].shared_offset, 32768u);
}

TEST(GoldenFiles, HoldACompressedImageOfFormatVersion2) {
  ImageHeader header;
  const auto index = read_image(golden("image-v2.bin"), &header);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(header.format_version, 2u);
  ASSERT_EQ(index->regions.size(), 2u);
  const Region& temperature = index->regions[0];
  EXPECT_EQ(temperature.encoding, Encoding::blocks);
  EXPECT_EQ(temperature.compression, (Compression{3, 0.01}));
  EXPECT_EQ(temperature.encoded.sizes, std::vector{temperature.stored_bytes});
  EXPECT_EQ(temperature.encoded.lossy, 1u);
  EXPECT_GT(temperature.encoded.greatest_error, 0);
  EXPECT_TRUE(index->regions[1].is_raw());
}

TEST(GoldenFiles, HoldAManifestOfFormatVersion3) {
  const auto read = decode_manifest(golden("manifest-v3.bin"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, compressed_manifest());
  EXPECT_EQ(read->greatest_error(), 0.75);
  EXPECT_FALSE(read->ranks[4].is_encoded());
}

TEST(GoldenFiles, HoldACompressedBlockOfFormatVersion1) {
  const codec::Shape shape{ElementType::float64, {1, 1, 2, 8}};
  ByteVector values(shape.bytes());
  const auto decoded = codec::BlockDecoder().decode(golden("block-v1.bin"), shape, values);
  ASSERT_TRUE(decoded) << decoded.error().message;
  for (int i = 0; i < 16; ++i) {
    double value;
    std::memcpy(&value, values.data() + 8 * i, sizeof value);
    EXPECT_NEAR(value, (200 + i * i) / 10.0, 0.01);
  }
}

TEST(GoldenFiles, ThatAreBrokenAreRefusedForTheRightReason) {
  const auto image = [](const std::string& what) {
    return decode_header(golden("broken-image-" + what)).error();
  };
  const auto manifest = [](const std::string& what) {
    return decode_manifest(golden("broken-manifest-" + what)).error();
  };
  EXPECT_THAT(image("truncated.bin").message, HasSubstr("1000 bytes where 4096 are needed"));
  EXPECT_THAT(image("flipped.bin").message, HasSubstr("checksum"));
  EXPECT_THAT(image("magic.bin").message, HasSubstr("not a Diapause image"));
  EXPECT_EQ(image("future.bin").code, Code::mismatch);
  EXPECT_THAT(manifest("truncated.bin").message, HasSubstr("bytes where it says"));
  EXPECT_THAT(manifest("flipped.bin").message, HasSubstr("digest"));
  EXPECT_THAT(manifest("magic.bin").message, HasSubstr("not a Diapause manifest"));
  EXPECT_EQ(manifest("future.bin").code, Code::mismatch);
}

TEST(FormatDocuments, ShowTheBytesOfTheGoldenFiles) {
  EXPECT_TRUE(parse_hex_dump(text_of(kRoot / "docs/formats/image.md")) == golden("image-v1.bin"));
  EXPECT_TRUE(parse_hex_dump(text_of(kRoot / "docs/formats/manifest.md")) ==
              golden("manifest-v2.bin"));
  EXPECT_TRUE(parse_hex_dump(text_of(kRoot / "docs/formats/compressed-block.md")) ==
              golden("block-v1.bin"));
}

TEST(HexDump, LeavesZerosOutAndGivesTheLengthLast) {
  const ByteVector bytes = parse_hex_dump(
      "prose\n```\n00000000  44 49\n00000020  ff  text that is no number\n00000023\n```\n00000040  "
      "aa\n");
  ASSERT_EQ(bytes.size(), 0x23u);
  EXPECT_EQ(bytes[1], std::byte{0x49});
  EXPECT_EQ(bytes[2], std::byte{0});
  EXPECT_EQ(bytes[0x20], std::byte{0xff});
}

}  // namespace
}  // namespace diapause::golden
