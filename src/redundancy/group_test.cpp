// Tests layout and arithmetic together on bytes in memory, as the engine uses them on files and
// messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"

namespace diapause::redundancy {
namespace {

struct StoredGroup {
  GroupLayout layout;
  ReedSolomon code;
  std::uint64_t chunk_bytes = 0;
  std::vector<std::uint64_t> sizes;       // sizes of the images
  std::vector<ByteVector> padded_images;  // each has k chunks
  std::vector<ByteVector> parities;       // each has m chunks

  std::byte* chunk(std::uint32_t member, std::uint32_t row) {
    auto& file = layout.holds_parity(member, row) ? parities[member] : padded_images[member];
    return file.data() + layout.chunk_index(member, row) * chunk_bytes;
  }
};

StoredGroup random_group(std::uint32_t n, std::uint32_t m, std::uint32_t seed) {
  StoredGroup group{*GroupLayout::create(n, m), *ReedSolomon::create(n - m, m), 0, {}, {}, {}};
  std::mt19937 random(seed);
  for (std::uint32_t member = 0; member < n; ++member)
    group.sizes.push_back(member == seed % n ? 0 : random() % 20000);
  group.chunk_bytes = group.layout.chunk_bytes(*std::ranges::max_element(group.sizes));
  group.parities.assign(n, ByteVector(m * group.chunk_bytes));
  group.padded_images.assign(n, ByteVector(group.layout.k() * group.chunk_bytes));
  for (std::uint32_t member = 0; member < n; ++member) {
    for (std::uint64_t i = 0; i < group.sizes[member]; ++i) {
      group.padded_images[member][i] = static_cast<std::byte>(random());
    }
  }
  return group;
}

void encode(StoredGroup& group) {
  for (std::uint32_t row = 0; row < group.layout.n(); ++row) {
    std::vector<const std::byte*> data;
    std::vector<std::byte*> parity;
    for (std::uint32_t position = 0; position < group.layout.n(); ++position) {
      std::byte* chunk = group.chunk(group.layout.member_at(position, row), row);
      if (position < group.layout.k()) {
        data.push_back(chunk);
      } else {
        parity.push_back(chunk);
      }
    }
    group.code.encode(data, parity, group.chunk_bytes);
  }
}

void erase(StoredGroup& group, std::uint32_t members) {
  for (std::uint32_t member = 0; member < group.layout.n(); ++member) {
    if ((members >> member & 1U) == 0) continue;
    std::ranges::fill(group.padded_images[member], std::byte{0xee});
    std::ranges::fill(group.parities[member], std::byte{0xee});
  }
}

void rebuild(StoredGroup& group, std::uint32_t erased) {
  for (std::uint32_t row = 0; row < group.layout.n(); ++row) {
    std::vector<std::uint32_t> available, wanted;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (std::uint32_t member = 0; member < group.layout.n(); ++member) {
      if (erased >> member & 1U) {
        wanted.push_back(group.layout.position(member, row));
        to.push_back(group.chunk(member, row));
      } else if (available.size() < group.layout.k()) {
        available.push_back(group.layout.position(member, row));
        from.push_back(group.chunk(member, row));
      }
    }
    const auto decoder = group.code.decoder(available, wanted);
    ASSERT_TRUE(decoder.has_value());
    decoder->decode(from, to, group.chunk_bytes);
  }
}

TEST(Group, GivesBackEveryImageAndParityAfterAnyLossOfAtMostMMembers) {
  for (std::uint32_t n = 2; n <= 6; ++n) {
    for (std::uint32_t m = 1; m < n; ++m) {
      StoredGroup original = random_group(n, m, n * 7 + m);
      encode(original);
      for (std::uint32_t erased = 0; erased < 1U << n; ++erased) {
        if (std::popcount(erased) > static_cast<int>(m)) continue;
        StoredGroup group = original;
        erase(group, erased);
        rebuild(group, erased);
        ASSERT_EQ(group.padded_images, original.padded_images)
            << "n " << n << " m " << m << " erased " << erased;
        ASSERT_EQ(group.parities, original.parities)
            << "n " << n << " m " << m << " erased " << erased;
      }
    }
  }
}

TEST(Group, IsLostWithOneMemberMoreThanItHasParity) {
  const StoredGroup group = random_group(4, 2, 1);
  const std::vector available{0U};
  EXPECT_FALSE(group.code.decoder(available, std::vector{1U}).has_value());
}

}  // namespace
}  // namespace diapause::redundancy
