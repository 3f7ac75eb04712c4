#include "process/x86_64/vdso.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "process/proc.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kElsewhere = 0x123456789000;

ByteVector own_code() {
  const std::uint64_t begin = ::getauxval(AT_SYSINFO_EHDR);
  const auto mappings = places_of(::getpid());
  for (const Mapping& one : mappings.value()) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(begin);
    if (one.begin == begin) return {bytes, bytes + (one.end - one.begin)};
  }
  return {};
}

// Gives all functions of this name another one of the same length.
ByteVector renamed(ByteVector code, const std::string& from, const std::string& to) {
  const ByteView old_name = as_byte_view(std::string_view(from.c_str(), from.size() + 1));
  for (auto at = code.begin();;) {
    at = std::search(at, code.end(), old_name.begin(), old_name.end());
    if (at == code.end()) return code;
    std::ranges::copy(as_byte_view(std::string_view(to)), at);
  }
}

bool holds(const ByteVector& code, std::initializer_list<unsigned> bytes) {
  ByteVector wanted;
  for (const unsigned one : bytes) wanted.push_back(static_cast<std::byte>(one));
  return std::search(code.begin(), code.end(), wanted.begin(), wanted.end()) != code.end();
}

TEST(CodeOfAnotherKernel, LeadsToThatOfThisOne) {
  const ByteVector own = own_code();
  const auto changed = lead_over(own, own, kElsewhere);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->size(), own.size());
  std::size_t jumps = 0;
  for (std::size_t at = 0; at + 12 <= changed->size(); ++at) {
    const bool is_jump = std::to_integer<int>((*changed)[at]) == 0x48 &&
                         std::to_integer<int>((*changed)[at + 1]) == 0xb8 &&
                         std::to_integer<int>((*changed)[at + 10]) == 0xff &&
                         std::to_integer<int>((*changed)[at + 11]) == 0xe0;
    std::uint64_t target = 0;
    std::ranges::copy(ByteView(*changed).subspan(at + 2, 8), reinterpret_cast<std::byte*>(&target));
    // The function is the same one, elsewhere.
    if (is_jump && target == kElsewhere + at) ++jumps;
  }
  EXPECT_GE(jumps, 4u);
}

TEST(CodeOfAnotherKernel, AsksTheKernelWhereThatHasNoSuchFunction) {
  const ByteVector own = own_code();
  const auto changed = lead_over(own, renamed(own, "time", "tame"), kElsewhere);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(holds(*changed, {0xb8, 201, 0, 0, 0, 0x0f, 0x05, 0xc3}));
  EXPECT_FALSE(holds(own, {0xb8, 201, 0, 0, 0, 0x0f, 0x05, 0xc3}));
}

TEST(CodeOfAnotherKernel, IsRefusedWithAFunctionThatNobodyKnows) {
  const ByteVector own = own_code();
  const auto changed = lead_over(renamed(own, "getcpu", "getrpu"), own, kElsewhere);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Code::mismatch);
  EXPECT_NE(changed.error().message.find("getrpu"), std::string::npos);
}

TEST(CodeOfAnotherKernel, IsNotBelieved) {
  const ByteVector own = own_code();
  EXPECT_FALSE(lead_over({}, own, kElsewhere));
  EXPECT_FALSE(lead_over(ByteVector(own.size()), own, kElsewhere));
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    ByteVector code = own;
    const std::size_t reach = i % 2 == 0 ? 0x500 : code.size();  // headers and tables, or all
    for (int change = 0; change < 4; ++change)
      code[random() % reach] = static_cast<std::byte>(random());
    code.resize(i % 8 == 7 ? random() % code.size() : code.size());
    const auto changed = lead_over(code, own, kElsewhere);
    EXPECT_TRUE(!changed || changed->size() == code.size());
  }
}

}  // namespace
}  // namespace diapause::process
