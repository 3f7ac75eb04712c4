#include "engine/accounting/json_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace diapause::engine {
namespace {

using nlohmann::json;

TEST(JsonTextTest, HoldsWhatWasPutIn) {
  JsonText text;
  text.put("version", std::numeric_limits<std::uint64_t>::max());
  text.put("level", -3);
  text.open_object("phases");
  text.put("capture", 1e-5);
  text.put("keep", 0.1 + 0.2);
  text.close();
  text.open_array("ways");
  for (const char* way : {"copy", "incremental"}) {
    text.open_object("");
    text.put("method", way);
    text.open_array("named");
    text.put("", "a");
    text.put("", "b");
    text.close();
    text.close();
  }
  text.close();
  text.open_array("none");
  text.close();
  text.put_null("error");
  const json expected = {{"version", std::numeric_limits<std::uint64_t>::max()},
                         {"level", -3},
                         {"phases", {{"capture", 1e-5}, {"keep", 0.1 + 0.2}}},
                         {"ways",
                          {{{"method", "copy"}, {"named", {"a", "b"}}},
                           {{"method", "incremental"}, {"named", {"a", "b"}}}}},
                         {"none", json::array()},
                         {"error", nullptr}};
  EXPECT_EQ(json::parse(text.take()), expected);
}

TEST(JsonTextTest, EscapesTextsAndReplacesWhatIsNoUtf8) {
  JsonText text;
  text.put("escaped", "a \"quoted\" \\ and\na line");
  text.put("utf8",
           "Gr\xc3\xb6\xc3\x9f"
           "e");
  text.put("bytes", "x\xff");
  const json parsed = json::parse(text.take());
  EXPECT_EQ(parsed["escaped"], "a \"quoted\" \\ and\na line");
  EXPECT_EQ(parsed["utf8"],
            "Gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(parsed["bytes"], "x\xef\xbf\xbd");
}

TEST(JsonTextTest, WritesNullForNumbersThatAreNotFinite) {
  JsonText text;
  text.put("nan", std::numeric_limits<double>::quiet_NaN());
  text.put("infinite", -std::numeric_limits<double>::infinity());
  const json parsed = json::parse(text.take());
  EXPECT_TRUE(parsed["nan"].is_null());
  EXPECT_TRUE(parsed["infinite"].is_null());
}

TEST(JsonTextTest, WritesWholeSecondsAsFloatingPoint) {
  JsonText text;
  text.put("seconds", 2.0);
  text.put("many", 1e30);
  text.put("bytes", 2U);
  const json parsed = json::parse(text.take());
  EXPECT_TRUE(parsed["seconds"].is_number_float());
  EXPECT_TRUE(parsed["many"].is_number_float());
  EXPECT_TRUE(parsed["bytes"].is_number_integer());
}

TEST(JsonTextTest, OfNothingIsAnEmptyObject) { EXPECT_EQ(JsonText().take(), "{}"); }

}  // namespace
}  // namespace diapause::engine
