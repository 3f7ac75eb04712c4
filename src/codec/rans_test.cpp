#include "codec/rans.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace diapause::codec {
namespace {

// Returns bytes whose frequencies fall off with `spread`; with a large one, all values occur.
ByteVector bytes_of(std::size_t size, double spread) {
  std::mt19937 random(static_cast<std::uint32_t>(size));
  std::exponential_distribution<double> fall(1 / spread);
  ByteVector bytes(size);
  for (std::byte& value : bytes) value = static_cast<std::byte>(std::min(255.0, fall(random)));
  bytes.front() = std::byte{0};
  bytes.back() = std::byte{1};
  return bytes;
}

ByteVector coded(const ByteVector& in) {
  ByteVector scratch, out(2 * in.size() + 1000);
  out.resize(rans_encode(in, histogram_of(in), scratch, out));
  return out;
}

TEST(Rans, GivesBackRunsOfAllLengthsAndFrequencies) {
  for (const double spread : {0.05, 1.0, 20.0, 1000.0}) {
    for (const std::size_t size : {2, 3, 7, 8, 9, 15, 16, 17, 100, 1000, 32768}) {
      const ByteVector in = bytes_of(size, spread);
      ByteVector out(size);
      ASSERT_TRUE(rans_decode(coded(in), out)) << size << " bytes, spread " << spread;
      ASSERT_EQ(out, in);
    }
  }
}

TEST(Rans, ComesWithinTwoPercentOfTheEntropy) {
  for (const double spread : {0.3, 2.0, 20.0}) {
    const ByteVector in = bytes_of(32768, spread);
    EXPECT_LT(static_cast<double>(coded(in).size()), 1.02 * entropy_bytes(histogram_of(in)) + 300)
        << spread;
  }
}

TEST(Rans, WritesNothingWhereThereIsNoRoom) {
  const ByteVector in = bytes_of(1000, 5);
  ByteVector scratch, out(coded(in).size() - 1);
  EXPECT_EQ(rans_encode(in, histogram_of(in), scratch, out), 0u);
}

TEST(Rans, RefusesWhatIsCutShortOrForAnotherLength) {
  const ByteVector in = bytes_of(1000, 5), sound = coded(in);
  ByteVector out(in.size()), longer(in.size() + 1), shorter(in.size() - 1);
  for (std::size_t size = 0; size < sound.size(); ++size) {
    ASSERT_FALSE(rans_decode(ByteView(sound).first(size), out)) << size;
  }
  EXPECT_FALSE(rans_decode(sound, longer));
  EXPECT_FALSE(rans_decode(sound, shorter));
}

}  // namespace
}  // namespace diapause::codec
