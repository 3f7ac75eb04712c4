#include "codec/transform.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace diapause::codec {
namespace {

constexpr Dims kTransformShapes[] = {{1, 1, 1, 1}, {1, 1, 1, 2},  {1, 1, 1, 100}, {1, 1, 100, 1},
                                     {1, 1, 2, 2}, {1, 1, 33, 3}, {1, 1, 31, 65}, {1, 3, 17, 9},
                                     {2, 3, 4, 5}, {3, 2, 40, 41}};

template <class Word>
std::vector<Word> random_words(const Dims& dims) {
  std::mt19937_64 random(dims[3]);
  std::vector<Word> words(dims[0] * dims[1] * dims[2] * dims[3]);
  for (Word& word : words) word = static_cast<Word>(random());
  return words;
}

template <class Word>
void expect_undone() {
  Transform<Word> transform;
  for (const Dims& dims : kTransformShapes) {
    for (std::uint32_t bits = 0; bits < 32; ++bits) {
      const Prediction prediction{bits & 15, bits >= 16};
      const std::vector<Word> in = random_words<Word>(dims);
      std::vector<Word> words = in;
      transform.predict(prediction, dims, words);
      transform.undo(prediction, dims, words);
      ASSERT_EQ(words, in) << "prediction " << bits << ", rows of " << dims[3];
    }
  }
}

TEST(Predictions, AreUndoneExactlyWhateverTheNumbersAre) {
  expect_undone<std::uint32_t>();
  expect_undone<std::uint64_t>();
}

// Returns a number for each place.
std::vector<std::uint32_t> field_of(const Dims& dims,
                                    std::int32_t (*value)(double b, double c, double d)) {
  std::vector<std::uint32_t> words;
  for (std::uint64_t b = 0; b < dims[1]; ++b) {
    for (std::uint64_t c = 0; c < dims[2]; ++c) {
      for (std::uint64_t d = 0; d < dims[3]; ++d) {
        words.push_back(static_cast<std::uint32_t>(
            value(static_cast<double>(b), static_cast<double>(c), static_cast<double>(d))));
      }
    }
  }
  return words;
}

std::uint64_t sum_of_magnitudes(std::vector<std::uint32_t> words) {
  fold_signs<std::uint32_t>(words);
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0});
}

TEST(Predictions, LeaveNothingOfAPlaneButItsEdges) {
  const Dims dims = {1, 1, 50, 60};
  const auto plane = field_of(
      dims, [](double, double c, double d) { return static_cast<std::int32_t>(3 * c + 5 * d); });
  Transform<std::uint32_t> transform;
  for (const Prediction& prediction : {Prediction{0b1100, false}, Prediction{0, true}}) {
    auto words = plane;
    transform.predict(prediction, dims, words);
    EXPECT_LT(sum_of_magnitudes(words), 60u * 50 * 4) << prediction.interpolates;
    EXPECT_GT(sum_of_magnitudes(plane), 60u * 50 * 400);
  }
}

TEST(Predictions, AreChosenByWhatTheDataAreLike) {
  Transform<std::uint32_t> transform;
  const Dims particles = {1, 1, 3000, 3}, box = {1, 32, 64, 64};
  // The coordinates of a particle differ much from each other and little from those of the particle
  // before.
  const auto coordinates = field_of(particles, [](double, double c, double d) {
    return static_cast<std::int32_t>(1e6 * std::sin(7 * d + 1) + 50 * std::sin(c * c * (d + 1)) +
                                     c);
  });
  EXPECT_EQ(transform.choose(particles, coordinates), (Prediction{0b0100, false}));
  const auto waves = field_of(box, [](double b, double c, double d) {
    return static_cast<std::int32_t>(1e5 * std::sin(0.1 * b) * std::sin(0.08 * c) *
                                     std::sin(0.12 * d));
  });
  EXPECT_TRUE(transform.choose(box, waves).interpolates);
  std::vector<std::uint32_t> noise = random_words<std::uint32_t>(box);
  for (std::uint32_t& word : noise) word = word % 2001 - 1000;
  EXPECT_EQ(transform.choose(box, noise), (Prediction{0, false}));
}

TEST(Signs, AreFoldedSoThatSmallNumbersOfBothSignsAreSmall) {
  std::vector<std::uint32_t> words = {0, 0xffffffff, 1, 0xfffffffe, 2, 0x80000000, 0x7fffffff};
  const auto unfolded = words;
  fold_signs<std::uint32_t>(words);
  EXPECT_EQ(words, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 0xffffffff, 0xfffffffe}));
  unfold_signs<std::uint32_t>(words);
  EXPECT_EQ(words, unfolded);
}

}  // namespace
}  // namespace diapause::codec
