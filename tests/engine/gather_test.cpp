#include "engine/job/gather.hpp"

#include <gtest/gtest.h>

namespace diapause::engine {
namespace {

template <class Value>
std::vector<Value> there_and_back(const std::vector<Value>& values) {
  const ByteVector message = packed(std::span<const Value>(values));
  auto arrived = values_in<Value>(message, "values");
  EXPECT_TRUE(arrived);
  return arrived ? *arrived : std::vector<Value>{};
}

TEST(Gather, BringsPlainValuesAndTexts) {
  const std::vector<std::int64_t> numbers = {-1, 0, 7};
  const std::vector<std::string> texts = {"", "one", std::string("t\0wo", 4)};
  EXPECT_EQ(there_and_back(numbers), numbers);
  EXPECT_EQ(there_and_back(texts), texts);
}

TEST(Gather, BringsValuesThatSayThemselvesHowTheyAreWritten) {
  const auto arrived = there_and_back<Neighbour>({{-3, 2, {1, 5}}, {4, 0, {}}});
  ASSERT_EQ(arrived.size(), 2u);
  EXPECT_EQ(arrived[0].process, -3);
  EXPECT_EQ(arrived[0].machine, 2u);
  EXPECT_EQ(arrived[0].cpus, (std::vector<std::uint32_t>{1, 5}));
  EXPECT_TRUE(arrived[1].cpus.empty());
}

template <class Value>
void expect_refused_if_cut(const std::vector<Value>& values) {
  const ByteVector whole = packed(std::span<const Value>(values));
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(values_in<Value>(ByteView(whole).first(bytes), "values"))
        << bytes << " of " << whole.size();
  }
}

TEST(Gather, RefusesAMessageThatIsCutShort) {
  expect_refused_if_cut<std::int64_t>({5});
  expect_refused_if_cut<std::string>({"a text"});
  expect_refused_if_cut<Neighbour>({{3, 2, {1, 5}}});
}

TEST(Gather, RefusesANumberOfItemsThatCannotFollow) {
  format::Writer message(16);
  message.u64(3);
  message.u32(2);
  message.u64(~std::uint64_t{0});
  EXPECT_FALSE(values_in<Neighbour>(message.written(), "neighbours"));
}

}  // namespace
}  // namespace diapause::engine
