#include "codec/sparse.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "codec/clones.hpp"

namespace diapause::codec {
namespace {

constexpr std::size_t kLongGap = 255;
constexpr std::size_t kWordBytes = 8;

// Loads a word with the first byte in the lowest bits, whatever the machine's byte order.
std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

// Returns a word with the highest bit set of each byte that is not zero.
std::uint64_t nonzero_bytes(std::uint64_t word) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  return (((word & kLow) + kLow) | word) & ~kLow;
}

DIAPAUSE_CLONES std::size_t count_with_vectors(ByteView in) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < in.size();) {
    const std::size_t end = std::min(in.size(), at + kLongGap);  // a byte cannot count further
    std::uint8_t some = 0;
    for (; at < end; ++at)
      some = static_cast<std::uint8_t>(some + (in[at] != std::byte{0} ? 1 : 0));
    count += some;
  }
  return count;
}

}  // namespace

std::size_t count_nonzero(ByteView in) { return count_with_vectors(in); }

void to_sparse(ByteView in, Sparse& sparse) {
  sparse.gaps.clear();
  sparse.values.clear();
  std::size_t next = 0;  // behind the last place that a gap refers to
  const auto add = [&](std::size_t place) {
    for (; place - next >= kLongGap; next += kLongGap) sparse.gaps.push_back(std::byte{kLongGap});
    sparse.gaps.push_back(static_cast<std::byte>(place - next));
    sparse.values.push_back(in[place]);
    next = place + 1;
  };
  std::size_t at = 0;
  for (; at + kWordBytes <= in.size(); at += kWordBytes) {
    for (std::uint64_t left = nonzero_bytes(load_word(in.data() + at)); left != 0;
         left &= left - 1) {
      add(at + static_cast<std::size_t>(std::countr_zero(left)) / 8);
    }
  }
  for (; at < in.size(); ++at) {
    if (in[at] != std::byte{0}) add(at);
  }
}

bool from_sparse(ByteView gaps, ByteView values, MutableBytes out) {
  std::ranges::fill(out, std::byte{0});
  std::size_t place = 0, used = 0;
  for (const std::byte gap : gaps) {
    place += std::to_integer<std::size_t>(gap);
    if (gap == std::byte{kLongGap}) continue;
    if (place >= out.size() || used == values.size()) return false;
    out[place++] = values[used++];
  }
  return used == values.size() && place <= out.size();
}

}  // namespace diapause::codec
