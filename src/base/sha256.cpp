#include "base/sha256.hpp"

#include <algorithm>
#include <bit>

namespace diapause {
namespace {

constexpr std::size_t kBlockBytes = 64;

// These are the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void add(ByteView data) {
    bytes_ += data.size();
    for (const std::byte one : data) {
      block_[filled_++] = one;
      if (filled_ == kBlockBytes) mix();
    }
  }

  Digest finish() {
    const std::uint64_t bits = bytes_ * 8;
    block_[filled_++] = std::byte{0x80};
    if (filled_ > kBlockBytes - 8) {
      std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), std::byte{0});
      mix();
    }
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), std::byte{0});
    for (std::size_t i = 0; i < 8; ++i)
      block_[kBlockBytes - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    mix();
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    }
    return digest;
  }

 private:
  void mix() {
    filled_ = 0;
    std::array<std::uint32_t, 64> words{};
    for (std::size_t i = 0; i < kBlockBytes; ++i) {
      words[i / 4] |= static_cast<std::uint32_t>(block_[i]) << (24 - 8 * (i % 4));
    }
    for (std::size_t i = 16; i < words.size(); ++i) {
      const std::uint32_t a = words[i - 15], b = words[i - 2];
      words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
                 (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
      const std::uint32_t two =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + one;
      d = c;
      c = b;
      b = a;
      a = one + two;
    }
    const std::array<std::uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += mixed[i];
  }

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Digest sha256(ByteView data) {
  Sha256 hash;
  hash.add(data);
  return hash.finish();
}

Digest hmac_sha256(ByteView key, ByteView message) {
  std::array<std::byte, kBlockBytes> padded{};
  if (key.size() > kBlockBytes) {
    const Digest short_key = sha256(key);
    std::ranges::copy(short_key, padded.begin());
  } else {
    std::ranges::copy(key, padded.begin());
  }
  const auto keyed = [&](std::byte pad, ByteView data) {
    std::array<std::byte, kBlockBytes> block{};
    std::ranges::transform(padded, block.begin(), [&](std::byte one) { return one ^ pad; });
    Sha256 hash;
    hash.add(block);
    hash.add(data);
    return hash.finish();
  };
  return keyed(std::byte{0x5c}, keyed(std::byte{0x36}, message));
}

bool is_equal_secret(ByteView one, ByteView other) {
  if (one.size() != other.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{0};
}

}  // namespace diapause
