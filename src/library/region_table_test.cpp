#include "library/region_table.hpp"

#include <gmock/gmock.h>

#include <array>
#include <vector>

namespace diapause::library {
namespace {

using testing::ElementsAre;

ProtectedRegion region(const std::string& name, std::byte* data, std::uint64_t count) {
  ProtectedRegion one;
  one.description.name = name;
  one.description.element_bytes = 1;
  one.description.count = count;
  one.data = data;
  return one;
}

std::vector<std::string> names(const RegionTable& table) {
  std::vector<std::string> all;
  for (const ProtectedRegion& one : table) all.push_back(one.description.name);
  return all;
}

TEST(RegionTable, KeepsTheOrderAndAReplacedRegionItsPlace) {
  std::array<std::byte, 8> memory{};
  RegionTable table;
  for (const char* name : {"a", "b", "c", "d"})
    ASSERT_TRUE(table.protect(region(name, memory.data(), 2)));
  ASSERT_TRUE(table.protect(region("b", memory.data() + 4, 3)));
  ASSERT_TRUE(table.unprotect("c"));
  EXPECT_THAT(names(table), ElementsAre("a", "b", "d"));
  EXPECT_EQ((*table.get("b"))->data, memory.data() + 4);
  EXPECT_EQ(table.bytes(), 2u + 3u + 2u);
  EXPECT_EQ(table.get("c").error().code, Code::not_found);
  EXPECT_EQ(table.unprotect("c").error().code, Code::not_found);
}

TEST(RegionTable, RefusesWhatCannotBeAndStaysAsItWas) {
  std::array<std::byte, 8> memory{};
  RegionTable table;
  ASSERT_TRUE(table.protect(region("a", memory.data(), 2)));
  EXPECT_EQ(table.protect(region("", memory.data(), 2)).error().code, Code::argument);
  EXPECT_EQ(table.protect(region("a", nullptr, 2)).error().code, Code::argument);
  EXPECT_EQ(table.protect(region("a", memory.data(), std::uint64_t{1} << 60)).error().code,
            Code::argument);
  EXPECT_EQ((*table.get("a"))->data, memory.data());
  EXPECT_EQ(table.size(), 1u);
}

TEST(RegionTable, FindsARegionByWhereItBegins) {
  std::array<std::byte, 16> memory{};
  const ByteView all(memory);
  RegionTable table;
  ASSERT_TRUE(table.protect(region("a", memory.data() + 4, 2)));
  EXPECT_EQ(table.find_in(all.first(4)), nullptr);
  ASSERT_NE(table.find_in(all), nullptr);
  EXPECT_EQ(table.find_in(all)->description.name, "a");
  ASSERT_TRUE(table.protect(region("a", memory.data() + 8, 2)));
  EXPECT_EQ(table.find_in(all.first(8)), nullptr);
  EXPECT_NE(table.find_in(all.subspan(8)), nullptr);
  ASSERT_TRUE(table.unprotect("a"));
  EXPECT_EQ(table.find_in(all), nullptr);
}

}  // namespace
}  // namespace diapause::library
