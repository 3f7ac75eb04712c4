#include "store/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace diapause::store {
namespace {

using format::VersionId;
using testing::MatchesRegex;

const std::string kHex = "00112233445566778899aabbccddeeff";

VersionId version(std::uint64_t number, std::uint32_t incarnation) {
  VersionId id{incarnation, number, {}};
  for (std::size_t i = 0; i < id.commit.bytes.size(); ++i)
    id.commit.bytes[i] = static_cast<std::uint8_t>(0x11 * i);
  return id;
}

TEST(VersionDirectory, SaysNumberIncarnationAndCommit) {
  EXPECT_EQ(version_directory(version(280, 2)), "v280-i2-" + kHex);
}

TEST(VersionDirectory, ComesBackAsTheSameVersionUpToTheLargestNumbers) {
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{10}, std::numeric_limits<std::uint64_t>::max()}) {
    for (const std::uint32_t incarnation :
         {0U, 1U, 100U, std::numeric_limits<std::uint32_t>::max()}) {
      const VersionId id = version(number, incarnation);
      EXPECT_EQ(parse_version_directory(version_directory(id)), id) << version_directory(id);
    }
  }
}

TEST(VersionDirectory, RefusesALeadingZero) {
  ASSERT_TRUE(parse_version_directory("v1-i1-" + kHex));
  EXPECT_FALSE(parse_version_directory("v01-i1-" + kHex));
  EXPECT_FALSE(parse_version_directory("v00-i1-" + kHex));
  EXPECT_FALSE(parse_version_directory("v1-i01-" + kHex));
}

TEST(VersionDirectory, RefusesACommitInOtherThanLowerCaseHex) {
  EXPECT_FALSE(parse_version_directory("v1-i1-00112233445566778899AABBCCDDEEFF"));
  EXPECT_FALSE(parse_version_directory("v1-i1-00112233445566778899aabbccddeefF"));
  EXPECT_FALSE(parse_version_directory("v1-i1-00112233445566778899aabbccddeefg"));
  EXPECT_FALSE(parse_version_directory("v1-i1-0x112233445566778899aabbccddeeff"));
  EXPECT_FALSE(parse_version_directory("v1-i1-+0112233445566778899aabbccddeeff"));
}

TEST(VersionDirectory, RefusesACommitOfAnotherLength) {
  EXPECT_FALSE(parse_version_directory("v1-i1-"));
  EXPECT_FALSE(parse_version_directory("v1-i1-" + kHex.substr(1)));
  EXPECT_FALSE(parse_version_directory("v1-i1-" + kHex + "0"));
}

TEST(VersionDirectory, RefusesMissingParts) {
  for (const std::string& name :
       {std::string(), std::string("v"), std::string("v1"), std::string("v1-i1"), "-i1-" + kHex,
        "v-i1-" + kHex, "v1-i-" + kHex, "v1-" + kHex, "v1i1-" + kHex, "1-i1-" + kHex}) {
    EXPECT_FALSE(parse_version_directory(name)) << name;
  }
}

TEST(VersionDirectory, RefusesSignsSpacesCapitalsAndTails) {
  for (const std::string& name :
       {"v+1-i1-" + kHex, "v-1-i1-" + kHex, " v1-i1-" + kHex, "v 1-i1-" + kHex, "V1-i1-" + kHex,
        "v1-I1-" + kHex, "v1-i1-" + kHex + ".tmp", "v1-i1-" + kHex + "/", "../v1-i1-" + kHex,
        "v1-i1-" + kHex + std::string(1, '\0')}) {
    EXPECT_FALSE(parse_version_directory(name)) << name;
  }
}

TEST(VersionDirectory, RefusesNumbersThatDoNotFit) {
  EXPECT_FALSE(parse_version_directory("v18446744073709551616-i1-" + kHex));
  EXPECT_FALSE(parse_version_directory("v1-i4294967296-" + kHex));
}

TEST(ImageName, ComesBackAsTheSameRank) {
  EXPECT_EQ(image_name(17), "r17.img");
  EXPECT_EQ(shared_name(3), "a3.img");
  EXPECT_EQ(parse_shared_name("a3.img"), 3u);
  for (const char* name :
       {"a.img", "a03.img", "r3.img", "a3.img.tmp", "a-1.img", "a4294967296.img"}) {
    EXPECT_FALSE(parse_shared_name(name)) << name;
  }
  for (const std::uint32_t rank : {0U, 9U, 10U, std::numeric_limits<std::uint32_t>::max()}) {
    EXPECT_EQ(parse_image_name(image_name(rank)), rank);
  }
}

TEST(ImageName, RefusesLookAlikes) {
  for (const char* name : {"", "r", "r.img", "r1", "r1.im", "r1.img ", "r1.img.tmp", "r1.img-4",
                           "r01.img", "R1.img", "r1.IMG", "r-1.img", "r+1.img", "r4294967296.img",
                           "r1x.img", "xr1.img", "./r1.img", "..", "g0-p1.img"}) {
    EXPECT_FALSE(parse_image_name(name)) << name;
  }
}

TEST(ParityName, ComesBackAsTheSameGroupAndMember) {
  EXPECT_EQ(parity_name(3, 12), "g3-p12.img");
  for (const std::uint32_t number : {0U, 10U, std::numeric_limits<std::uint32_t>::max()}) {
    EXPECT_EQ(parse_parity_name(parity_name(number, 7)), std::pair(number, 7U));
    EXPECT_EQ(parse_parity_name(parity_name(7, number)), std::pair(7U, number));
  }
}

TEST(ParityName, RefusesLookAlikes) {
  for (const char* name : {"", "g0", "g0-p", "g0-p1", "g-p1.img", "g0-.img", "g0p1.img",
                           "g00-p1.img", "g0-p01.img", "g4294967296-p0.img", "g0-p4294967296.img",
                           "g0-p1.img.tmp", "g0-p-1.img", "G0-p1.img", "g0-P1.img", "r0.img"}) {
    EXPECT_FALSE(parse_parity_name(name)) << name;
  }
}

TEST(JobKey, IsTheNameAndEightHexDigits) {
  EXPECT_THAT(old_job_key("heat", "/scratch/a"), MatchesRegex("heat-[0-9a-f]{8}"));
}

// Changed, it would hide every checkpoint that an earlier release wrote.
TEST(JobKey, StaysWhatItIs) { EXPECT_EQ(old_job_key("heat", "/scratch/a"), "heat-3aa550cb"); }

TEST(JobKey, TellsJobsOfOneNameInDifferentDirectoriesApart) {
  EXPECT_NE(old_job_key("heat", "/scratch/a"), old_job_key("heat", "/scratch/b"));
  EXPECT_NE(old_job_key("heat", "/scratch/a"), old_job_key("stream", "/scratch/a"));
}

}  // namespace
}  // namespace diapause::store
