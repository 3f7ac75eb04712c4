#include "process/zeros.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace diapause::process {
namespace {

constexpr std::uint64_t kGroup = 64 * 1024;

// Has memory of this process that holds zeros. `begin_` is a multiple of the group's size.
class Zeros : public ::testing::Test {
 protected:
  Zeros() {
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory_, 0, kBytes);
    begin_ = (reinterpret_cast<std::uint64_t>(memory_) + kGroup - 1) / kGroup * kGroup;
  }
  ~Zeros() override { ::munmap(memory_, kBytes); }

  void write_at(std::uint64_t offset) { *reinterpret_cast<char*>(begin_ + offset) = 1; }
  // Returns what is left of [from, to) without its zeros, as offsets from `begin_`.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> left_of(std::uint64_t from, std::uint64_t to,
                                                               bool is_forced = false,
                                                               const KnownZeros& known = {}) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
    const Extent range{begin_ + from, begin_ + to};
    for (const Extent& one : rest_of(range, zeros_in(::getpid(), range, is_forced, known))) {
      result.emplace_back(one.begin - begin_, one.end - begin_);
    }
    return result;
  }

  static constexpr std::uint64_t kBytes = 700 * kGroup;
  void* memory_;
  std::uint64_t begin_;
};

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST_F(Zeros, OfMemoryThatIsAllZeroOnlyTheRaggedEndsAreLeft) {
  EXPECT_EQ(left_of(0, 600 * kGroup), Ranges{});
  EXPECT_EQ(left_of(4096, 3 * kGroup + 8192),
            (Ranges{{4096, kGroup}, {3 * kGroup, 3 * kGroup + 8192}}));
}

TEST_F(Zeros, AByteAnywhereKeepsItsGroup) {
  write_at(2 * kGroup);
  write_at(5 * kGroup + 40'000);
  write_at(600 * kGroup - 1);
  EXPECT_EQ(
      left_of(0, 600 * kGroup),
      (Ranges{{2 * kGroup, 3 * kGroup}, {5 * kGroup, 6 * kGroup}, {599 * kGroup, 600 * kGroup}}));
}

TEST_F(Zeros, MemoryThatCannotBeReadIsKept) {
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(begin_ + kGroup), kGroup, PROT_NONE), 0);
  EXPECT_EQ(left_of(kGroup, 2 * kGroup), (Ranges{{kGroup, 2 * kGroup}}));
}

TEST_F(Zeros, WhatIsKnownIsNotRead) {
  write_at(2 * kGroup);
  const auto known = [&](std::uint64_t address) -> std::optional<bool> {
    if (address == begin_ + 2 * kGroup) return true;
    if (address == begin_ + 3 * kGroup) return false;
    return std::nullopt;
  };
  EXPECT_EQ(left_of(0, 600 * kGroup, false, known), (Ranges{{3 * kGroup, 4 * kGroup}}));
}

TEST_F(Zeros, ADebuggerSeesThemWhereTheProcessMayNotRead) {
  write_at(2 * kGroup);
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(begin_ + kGroup), 2 * kGroup, PROT_NONE), 0);
  EXPECT_EQ(left_of(kGroup, 3 * kGroup, true), (Ranges{{2 * kGroup, 3 * kGroup}}));
}

}  // namespace
}  // namespace diapause::process
