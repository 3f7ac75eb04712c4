#include "format/manifest.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "format/checksum.hpp"
#include "format/image.hpp"
#include "format/test_bytes.hpp"

namespace diapause::format {
namespace {

using testing::HasSubstr;

// Three nodes, two ranks on each of the first two and one on the last; two groups over all nodes.
Manifest small_manifest() {
  Manifest manifest;
  manifest.job = "heat-3d_v1.2";
  manifest.version = {3, 4000, {}};
  manifest.version.commit.bytes[15] = 0xab;
  manifest.levels = 1u << 1 | 1u << 3;
  manifest.created_unix_ns = 1700000000123456789;
  manifest.node_names = {"node-a", "node-b", "node-c"};
  for (const std::uint32_t node : {0u, 0u, 1u, 1u, 2u}) {
    RankRecord rank{{8192 + node, {node, 77}},    4000, node, kNoRank, 0,
                    12288 * manifest.ranks.size()};
    manifest.ranks.push_back(rank);
  }
  manifest.ranks[4].partner = 0;
  manifest.ranks[4].shared_file = kOwnFile;
  manifest.ranks[4].shared_offset = 0;
  const ImageRecord parity{8192, {5, 6}};
  manifest.groups.push_back({{0, 2, 4}, {0, 1, 2}, 1, 8192, {parity, parity, parity}});
  manifest.groups.push_back({{1, 3, kNoRank}, {0, 1, 2}, 1, 8192, {parity, parity, parity}});
  return manifest;
}

void seal(ByteVector& bytes) {
  const Digest128 digest = digest128(ByteView(bytes).first(bytes.size() - 16));
  put(bytes, bytes.size() - 16, digest.low, 8);
  put(bytes, bytes.size() - 8, digest.high, 8);
}

// Returns what decode_manifest says of the small manifest after a change; "" if it accepts it.
std::string refusal_of_change(const std::function<void(Manifest&)>& change) {
  Manifest manifest = small_manifest();
  change(manifest);
  const auto decoded = decode_manifest(encode_manifest(manifest));
  if (decoded) return "";
  EXPECT_EQ(decoded.error().code, Code::corrupt);
  return decoded.error().message;
}

std::string refusal_of_manifest_number(std::size_t offset, std::uint64_t value, std::size_t size) {
  ByteVector bytes = encode_manifest(small_manifest());
  put(bytes, offset, value, size);
  seal(bytes);
  const auto decoded = decode_manifest(bytes);
  return decoded ? "" : decoded.error().message;
}

TEST(Manifest, SurvivesARoundTrip) {
  const Manifest manifest = small_manifest();
  const auto decoded = decode_manifest(encode_manifest(manifest));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, manifest);
}

TEST(Manifest, OfThousandsOfRanksSurvivesARoundTrip) {
  Manifest manifest = small_manifest();
  manifest.groups.clear();
  manifest.node_names.clear();
  manifest.ranks.clear();
  for (std::uint32_t i = 0; i < 1000; ++i) manifest.node_names.push_back(fmt::format("n{}", i));
  for (std::uint32_t i = 0; i < 8000; ++i) {
    manifest.ranks.push_back(
        {{kHeaderBytes + i, {i, i}}, i, i / 8, (i + 8) % 8000, i % 7, (i / 7) * 16384});
  }
  const auto decoded = decode_manifest(encode_manifest(manifest));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, manifest);
}

TEST(Manifest, RefusesEverySingleBitFlip) {
  ByteVector bytes = encode_manifest(small_manifest());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    bytes[bit / 8] ^= mask;
    const auto decoded = decode_manifest(bytes);
    ASSERT_FALSE(decoded) << "bit " << bit;
    ASSERT_EQ(decoded.error().code, Code::corrupt) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST(Manifest, RefusesEveryTruncation) {
  const ByteVector bytes = encode_manifest(small_manifest());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(decode_manifest(ByteView(bytes).first(length))) << length;
  }
}

// The length and the digest are made to fit, so that the decoder itself has to notice.
TEST(Manifest, RefusesEveryTruncationEvenIfSealed) {
  ByteVector bytes = encode_manifest(small_manifest());
  while (bytes.size() > 40) {
    bytes.pop_back();
    put(bytes, 16, bytes.size(), 8);
    seal(bytes);
    ASSERT_FALSE(decode_manifest(bytes)) << bytes.size();
  }
}

TEST(Manifest, RefusesTrailingBytes) {
  ByteVector bytes = encode_manifest(small_manifest());
  bytes.push_back(std::byte{0});
  EXPECT_THAT(decode_manifest(bytes).error().message, HasSubstr("bytes where it says"));
  put(bytes, 16, bytes.size(), 8);
  seal(bytes);
  EXPECT_THAT(decode_manifest(bytes).error().message, HasSubstr("1 bytes behind its end"));
}

TEST(Manifest, OfAnotherFormatVersionNamesBothVersions) {
  ByteVector bytes = encode_manifest(small_manifest());
  put(bytes, 8, 9, 4);
  seal(bytes);
  const auto decoded = decode_manifest(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::mismatch);
  EXPECT_THAT(decoded.error().message, HasSubstr("format version 9"));
  EXPECT_THAT(decoded.error().message, HasSubstr("reads versions 1 to 3"));
}

TEST(Manifest, RefusesAnotherMagicNumber) {
  EXPECT_THAT(refusal_of_manifest_number(0, 'X', 1), HasSubstr("not a Diapause manifest"));
}

TEST(Manifest, RefusesAFileWithoutRoomForItsFields) {
  EXPECT_THAT(decode_manifest({}).error().message, HasSubstr("0 bytes are too few"));
}

TEST(Manifest, RefusesHostileCounts) {
  EXPECT_THAT(refusal_of_manifest_number(60, 0xffffffff, 4), HasSubstr("4294967295 nodes"));
  EXPECT_THAT(refusal_of_manifest_number(64, 0xffffffff, 4), HasSubstr("4294967295 ranks"));
  EXPECT_THAT(refusal_of_manifest_number(68, 0xffffffff, 4), HasSubstr("4294967295 groups"));
  EXPECT_THAT(refusal_of_manifest_number(72, 0xffffffff, 4), HasSubstr("job name of"));
  const std::size_t first_node = 76 + 12, first_group = first_node + 30 + 5 * 52;
  EXPECT_THAT(refusal_of_manifest_number(first_node, 0xffffffff, 4),
              HasSubstr("name of 4294967295"));
  EXPECT_THAT(refusal_of_manifest_number(first_group, 0xffffffff, 4),
              HasSubstr("4294967295 members"));
}

TEST(Manifest, RefusesUnknownLevels) {
  EXPECT_EQ(refusal_of_change([](auto& m) { m.levels = 0b11110; }), "");
  EXPECT_THAT(refusal_of_change([](auto& m) { m.levels = 1; }), HasSubstr("levels"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.levels = 1u << 5; }), HasSubstr("levels"));
}

TEST(Manifest, RefusesAnUnsoundJobName) {
  for (const char* name : {"", ".", "..", "a/b", "a b", "\xc3\xa4"}) {
    EXPECT_THAT(refusal_of_change([&](auto& m) { m.job = name; }), HasSubstr("job name")) << name;
  }
  EXPECT_EQ(refusal_of_change([](auto& m) { m.job = std::string(64, 'a'); }), "");
  EXPECT_THAT(refusal_of_change([](auto& m) { m.job = std::string(65, 'a'); }),
              HasSubstr("job name of 65"));
}

TEST(Manifest, RefusesANodeNameThatIsNotOneFileName) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("a/b"),
        std::string("a\0b", 3)}) {
    EXPECT_THAT(refusal_of_change([&](auto& m) { m.node_names[1] = name; }),
                HasSubstr("node 1: its name"))
        << name;
  }
  EXPECT_EQ(refusal_of_change([](auto& m) { m.node_names[1] = std::string(255, 'n'); }), "");
  EXPECT_THAT(refusal_of_change([](auto& m) { m.node_names[1] = std::string(256, 'n'); }),
              HasSubstr("name of 256"));
}

TEST(Manifest, RefusesARankThatPointsAtAMissingNode) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[1].node = 3; }),
              HasSubstr("rank 1: node 3 of 3"));
}

TEST(Manifest, RefusesARankWithAMissingPartner) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[1].partner = 5; }),
              HasSubstr("rank 1: partner 5 of 5"));
}

TEST(Manifest, RefusesAnImageThatCannotLieInASharedFile) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[1].shared_file = 5; }),
              HasSubstr("rank 1: shared file 5 of 5"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[1].shared_offset = 4097; }),
              HasSubstr("rank 1: image at byte 4097"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[1].shared_offset = 0x7ffffffffffff000; }),
              HasSubstr("image at byte"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[4].shared_offset = 4096; }),
              HasSubstr("rank 4: shared file"));
}

TEST(Manifest, RefusesAFileThatCannotBeAnImage) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[0].image.file_bytes = kHeaderBytes - 1; }),
              HasSubstr("image of 4095"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.ranks[0].image.file_bytes = 1ULL << 63; }),
              HasSubstr("image of"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].parities[2].file_bytes = 0; }),
              HasSubstr("parity of 0"));
}

TEST(Manifest, RefusesAJobWithoutRanks) {
  EXPECT_THAT(refusal_of_change([](auto& m) {
                m.ranks.clear();
                m.groups.clear();
              }),
              HasSubstr("0 ranks"));
}

TEST(Manifest, RefusesTheNumberThatStandsForTheNewest) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.version.number = UINT64_MAX; }),
              HasSubstr("version number"));
}

TEST(Manifest, RefusesAMissingRankInAGroup) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].members[0] = 5; }),
              HasSubstr("rank 5 is missing"));
}

TEST(Manifest, RefusesARankInTwoGroups) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[1].members[2] = 4; }),
              HasSubstr("group 1: rank 4"));
}

TEST(Manifest, RefusesANodeThatIsTwiceInAGroup) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[1].nodes[2] = 0; }),
              HasSubstr("group 1: node 0"));
}

TEST(Manifest, RefusesAMissingNodeInAGroup) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[1].nodes[2] = 3; }),
              HasSubstr("node 3 is missing"));
}

TEST(Manifest, RefusesAMemberOnAnotherNodeThanItsRank) {
  EXPECT_THAT(
      refusal_of_change([](auto& m) { std::swap(m.groups[1].nodes[0], m.groups[1].nodes[1]); }),
      HasSubstr("is on node"));
}

TEST(Manifest, RefusesAsManyParitiesAsMembers) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].parity = 3; }),
              HasSubstr("3 parities among 3"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].parity = 0; }),
              HasSubstr("0 parities among 3"));
}

TEST(Manifest, RefusesAGroupThatReedSolomonCannotCode) {
  EXPECT_THAT(refusal_of_change([](auto& m) {
                m.groups[1].members.resize(256, kNoRank);
                m.groups[1].nodes.resize(256, 0);
                m.groups[1].parities.resize(256, {8192, {}});
              }),
              HasSubstr("among 256"));
}

TEST(Manifest, RefusesChunksThatCannotHoldTheImages) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].chunk_bytes = 4096; }),
              HasSubstr("chunks cover 8192 of the 8193"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].chunk_bytes = 0; }),
              HasSubstr("chunks of 0"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].chunk_bytes = 8193; }),
              HasSubstr("chunks of 8193"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].chunk_bytes = 1ULL << 63; }),
              HasSubstr("chunks of"));
}

TEST(Manifest, IsNotReadableIfAGroupLacksParts) {
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].parities.clear(); }),
              HasSubstr("parity of 0"));
  EXPECT_THAT(refusal_of_change([](auto& m) { m.groups[0].nodes.clear(); }),
              HasSubstr("is missing"));
}

TEST(Manifest, KnowsItsDeepestLevel) {
  Manifest manifest;
  EXPECT_EQ(manifest.deepest_level(), 0);
  manifest.levels = 1u << 1 | 1u << 3;
  EXPECT_EQ(manifest.deepest_level(), 3);
  EXPECT_TRUE(manifest.has_level(1));
  EXPECT_FALSE(manifest.has_level(2));
}

Manifest compressed_manifest() {
  Manifest manifest = small_manifest();
  manifest.ranks[1].encoded = {5000, {8, 9}};
  manifest.ranks[1].greatest_error = 1e-6;
  manifest.lossy_restarts = 2;
  manifest.lossy_in_a_row = 3;
  return manifest;
}

TEST(CompressedManifest, ComesBackAsItWas) {
  const Manifest manifest = compressed_manifest();
  EXPECT_EQ(decode_manifest(encode_manifest(manifest)).value(), manifest);
  EXPECT_EQ(manifest.greatest_error(), 1e-6);
  EXPECT_EQ(manifest.ranks[1].in_global().file_bytes, 5000u);
  EXPECT_EQ(manifest.ranks[0].in_global().file_bytes, 8192u);
}

TEST(CompressedManifest, IsOfFormatVersion3OnlyWhereItHasToBe) {
  EXPECT_EQ(encode_manifest(compressed_manifest())[8], std::byte{3});
  EXPECT_EQ(encode_manifest(small_manifest())[8], std::byte{2});
}

TEST(CompressedManifest, IsRefusedWithARecordThatCannotBe) {
  const auto refused = [](const std::function<void(RankRecord&)>& change) {
    return refusal_of_change([&](Manifest& manifest) {
      manifest = compressed_manifest();
      change(manifest.ranks[1]);
    });
  };
  EXPECT_THAT(refused([](RankRecord& rank) { rank.encoded.file_bytes = 100; }),
              HasSubstr("image of 100 bytes"));
  EXPECT_THAT(refused([](RankRecord& rank) { rank.greatest_error = -1; }),
              HasSubstr("greatest error -1"));
  EXPECT_THAT(refused([](RankRecord& rank) { rank.encoded.file_bytes = 0; }),
              HasSubstr("greatest error"));
  EXPECT_THAT(
      refused([](RankRecord& rank) { rank.encoded.file_bytes = 0, rank.greatest_error = 0; }),
      HasSubstr("digest"));
}

}  // namespace
}  // namespace diapause::format
