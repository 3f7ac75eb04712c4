#include "process/x86_64/processor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace diapause::process {
namespace {

constexpr std::uint64_t kX87AndSse = 3, kAvx = 1u << 2, kMasks = 1u << 5, kKeys = 1u << 9;
const std::vector<RegisterPart> kSmall = {{2, 576, 256}, {9, 832, 8}};
const Processor kLarge{{}, {{2, 576, 256}, {5, 1088, 64}, {9, 2688, 8}}, 2696};

void fill(ByteVector& bytes, std::size_t begin, std::size_t count, int value) {
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), count,
              static_cast<std::byte>(value));
}

ByteVector saved(std::size_t length, std::uint64_t used) {
  ByteVector bytes(length);
  fill(bytes, 0, 464, 7);
  std::memcpy(bytes.data() + 512, &used, sizeof used);
  return bytes;
}

std::uint64_t used_in(const ByteVector& bytes) {
  std::uint64_t used = 0;
  std::memcpy(&used, bytes.data() + 512, sizeof used);
  return used;
}

TEST(SavedRegisters, AreTheSameOnTheSameProcessor) {
  const Processor here = this_processor();
  ASSERT_GE(here.bytes, 576u);
  ByteVector bytes(here.bytes);
  fill(bytes, 0, bytes.size(), 1);
  EXPECT_EQ(fit_registers(bytes, here.parts, here).value(), bytes);
  EXPECT_EQ(fit_registers(bytes, {}, here).value(), bytes);
  EXPECT_TRUE(std::ranges::find(here.instructions, "pni") != here.instructions.end());
}

TEST(SavedRegisters, GoWhereThisProcessorHasThem) {
  ByteVector bytes = saved(840, kX87AndSse | kAvx | kKeys);
  fill(bytes, 576, 256, 2);
  fill(bytes, 832, 8, 3);
  const auto fitted = fit_registers(bytes, kSmall, kLarge);
  ASSERT_TRUE(fitted) << fitted.error().message;
  ByteVector wanted = saved(2696, kX87AndSse | kAvx | kKeys);
  fill(wanted, 576, 256, 2);
  fill(wanted, 2688, 8, 3);
  EXPECT_EQ(*fitted, wanted);
  EXPECT_EQ(fit_registers(*fitted, kLarge.parts, {{}, kSmall, 840}).value(), bytes);
}

TEST(SavedRegisters, AreRefusedWhereTheyAreInUseAndNotHere) {
  const Processor small{{}, kSmall, 840};
  ByteVector bytes = saved(2696, kX87AndSse | kAvx | kMasks);
  EXPECT_EQ(used_in(fit_registers(bytes, kLarge.parts, small).value()), kX87AndSse | kAvx)
      << "registers that hold zeros are in no use";
  fill(bytes, 1088 + 63, 1, 1);
  const auto refused = fit_registers(bytes, kLarge.parts, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::mismatch);
  EXPECT_NE(refused.error().message.find("AVX-512"), std::string::npos);
}

TEST(SavedRegisters, OfAnUnknownProcessorFitNoOther) {
  const auto refused = fit_registers(saved(840, kX87AndSse), {}, kLarge);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::mismatch);
}

TEST(SavedRegisters, AreNotBelieved) {
  const auto code_of = [](const ByteVector& bytes, const std::vector<RegisterPart>& parts) {
    const auto fitted = fit_registers(bytes, parts, kLarge);
    return fitted ? Code::internal : fitted.error().code;
  };
  EXPECT_EQ(code_of(saved(570, kX87AndSse), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(832, kX87AndSse | kKeys), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(840, kX87AndSse | kMasks), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(840, kX87AndSse | kAvx), {{2, 0xffffffff, 0xffffffff}}), Code::corrupt);
}

}  // namespace
}  // namespace diapause::process
