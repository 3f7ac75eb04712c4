#include "format/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "format/checksum.hpp"
#include "format/copy_loop.hpp"
#include "support/same_bytes.hpp"

namespace diapause::format {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xee;

// Two buffers of known alignment, so that every misalignment is deliberate.
class CopyTest : public testing::Test {
 protected:
  void prepare(std::size_t largest) {
    from_pages_.resize((largest + 2 * kGuardBytes) / kPageBytes + 1);
    to_pages_.resize((largest + 4 * kGuardBytes) / kPageBytes + 1);
    from_ = std::as_writable_bytes(std::span(from_pages_));
    to_ = std::as_writable_bytes(std::span(to_pages_));
    std::uint32_t state = 1;
    for (std::byte& byte : from_)
      byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  }

  // Returns whether `size` bytes arrive complete, with their checksum, and no other byte is
  // touched.
  bool copies(std::size_t size, std::size_t from_shift, std::size_t to_shift) {
    const ByteView from = from_.subspan(from_shift, size);
    const MutableBytes around = to_.first(size + 2 * kGuardBytes + to_shift);
    const MutableBytes to = around.subspan(kGuardBytes + to_shift, size);
    const auto untouched = [](ByteView bytes) {
      return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{kGuard}; });
    };
    const auto arrives_by = [&](auto copy) {
      std::memset(around.data(), kGuard, around.size());
      return copy(to, from) == checksum64(from) && test_support::are_same(to, from) &&
             untouched(around.first(kGuardBytes + to_shift)) && untouched(around.last(kGuardBytes));
    };
    return arrives_by(copy_with_checksum) && arrives_by(copy_on_any_processor);
  }

  // The one above may be that for AVX2.
  static std::uint64_t copy_on_any_processor(MutableBytes to, ByteView from) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    copy_loop(&state, reinterpret_cast<unsigned char*>(to.data()),
              reinterpret_cast<const unsigned char*>(from.data()), from.size());
    return XXH3_64bits_digest(&state);
  }

  void expect_copies_at_all_misalignments(std::size_t size) {
    for (std::size_t from_shift = 0; from_shift < 33; ++from_shift) {
      for (std::size_t to_shift = 0; to_shift < 33; ++to_shift) {
        EXPECT_TRUE(copies(size, from_shift, to_shift))
            << size << " from +" << from_shift << " to +" << to_shift;
      }
    }
  }

  struct alignas(kPageBytes) Page {
    std::array<std::byte, kPageBytes> bytes;
  };
  std::vector<Page> from_pages_;
  std::vector<Page> to_pages_;
  MutableBytes from_;
  MutableBytes to_;
};

TEST_F(CopyTest, TakesEverySizeUpToThreePages) {
  prepare(3 * kPageBytes + 1);
  for (std::size_t size = 0; size <= 3 * kPageBytes + 1; ++size) {
    ASSERT_TRUE(copies(size, size % 17, size / 17 % 17)) << size;
    ASSERT_TRUE(copies(size, 0, 0)) << size;
  }
}

TEST_F(CopyTest, TakesEveryMisalignmentOfSmallSizes) {
  prepare(3 * kPageBytes + 1);
  for (const std::size_t size :
       {0,   1,   3,   4,    8,    9,    16,   17,   63,   64,   65,   128,  129,   240,   241,
        255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 12287, 12288, 12289}) {
    expect_copies_at_all_misalignments(size);
  }
}

TEST_F(CopyTest, TakesEveryMisalignmentWhereStoresBeginToBypassTheCache) {
  prepare(72 * 1024);
  for (const std::size_t size : {64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 64 * 1024 + 16,
                                 64 * 1024 + 48, 64 * 1024 + 63, 64 * 1024 + 64, 68 * 1024}) {
    expect_copies_at_all_misalignments(size);
  }
}

TEST_F(CopyTest, TakesSeveralMegabytes) {
  prepare(5 * kMiB + 100);
  for (const std::size_t size : {kMiB, 3 * kMiB - 1, 5 * kMiB, 5 * kMiB + 64, 5 * kMiB + 77}) {
    EXPECT_TRUE(copies(size, 0, 0)) << size;
    EXPECT_TRUE(copies(size, 5, 0)) << size;
    EXPECT_TRUE(copies(size, 0, 16)) << size;
    EXPECT_TRUE(copies(size, 3, 9)) << size;
  }
}

}  // namespace
}  // namespace diapause::format
