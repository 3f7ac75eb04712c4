#include "store/file_paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diapause::store {
namespace {

using ::testing::ElementsAre;

TEST(PathInName, IsThatOfAFileBelowADirectory) {
  const auto path = path_in_name("file:fields/step 5/temperature.h5");
  ASSERT_TRUE(path && *path);
  EXPECT_THAT(**path, ElementsAre("fields", "step 5", "temperature.h5"));
}

TEST(PathInName, IsNoneForOtherRegions) {
  for (const char* const name : {"temperature", "files", "profile:x", "file"}) {
    const auto path = path_in_name(name);
    ASSERT_TRUE(path) << name;
    EXPECT_FALSE(*path) << name;
  }
}

TEST(PathInName, LeadsNowhereElse) {
  const std::string with_zero("file:a\0b", 8);
  const std::string deep = "file:" + [] {
    std::string path;
    for (int i = 0; i < 100; ++i) path += "a/";
    return path + "a";
  }();
  for (const std::string& name :
       {std::string("file:"), std::string("file:/etc/passwd"), std::string("file:../x"),
        std::string("file:a/../x"), std::string("file:a//b"), std::string("file:a/"),
        std::string("file:."), with_zero, deep}) {
    const auto path = path_in_name(name);
    ASSERT_FALSE(path) << name;
    EXPECT_EQ(path.error().code, Code::corrupt);
  }
}

}  // namespace
}  // namespace diapause::store
