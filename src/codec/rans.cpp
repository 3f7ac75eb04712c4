#include "codec/rans.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace diapause::codec {
namespace {

constexpr std::uint32_t kScaleBits = 12;
constexpr std::uint32_t kScale = 1u << kScaleBits;
constexpr std::uint32_t kStateBits = 31;
constexpr std::uint32_t kLeastState = 1u << (kStateBits - 16);  // a state is between this and 2^31
constexpr std::size_t kStates = 8;
constexpr std::size_t kWordBytes = 2;

using Frequencies = std::array<std::uint32_t, 256>;  // their sum is kScale

// Returns frequencies in proportion to the counts. A symbol that occurs does not get 0, and no
// symbol gets kScale.
Frequencies scaled(const Histogram& histogram) {
  std::uint64_t all = 0;
  for (const std::uint32_t count : histogram) all += count;
  Frequencies scaled{};
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (histogram[i] == 0) continue;
    scaled[i] = std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(histogram[i] * std::uint64_t{kScale} / all));
    sum += scaled[i];
  }
  // The difference that rounding leaves is given to the most frequent values or taken from them,
  // because it has the least effect on these.
  while (sum != kScale) {
    const auto most = std::ranges::max_element(scaled);
    const std::uint32_t change = sum < kScale ? kScale - sum : std::min(sum - kScale, *most / 2);
    *most = sum < kScale ? *most + change : *most - change;
    sum = sum < kScale ? sum + change : sum - change;
  }
  return scaled;
}

// The encoder divides by a frequency by means of this multiplication.
struct EncoderEntry {
  std::uint32_t limit = 0;  // greatest state that can take the symbol without emitting a word first
  std::uint32_t reciprocal = 0;
  std::uint32_t shift = 0;
  std::uint16_t bias = 0;
  std::uint16_t complement = 0;  // kScale - frequency
};

EncoderEntry entry_of(std::uint32_t frequency, std::uint32_t start) {
  const std::uint32_t limit = frequency << (kStateBits - kScaleBits);
  const auto complement = static_cast<std::uint16_t>(kScale - frequency);
  // For a frequency of 1 the quotient is state - 1; the bias compensates for it.
  if (frequency == 1)
    return {limit, ~std::uint32_t{0}, 32, static_cast<std::uint16_t>(start + complement),
            complement};
  // This is exact for states below 2^31: the reciprocal, scaled to 32 bits, is too large by less
  // than one part in 2^31.
  const auto width = static_cast<std::uint32_t>(std::bit_width(frequency - 1));
  const auto reciprocal = ((std::uint64_t{1} << (width + 31)) + frequency - 1) / frequency;
  return {limit, static_cast<std::uint32_t>(reciprocal), width + 31,
          static_cast<std::uint16_t>(start), complement};
}

std::array<EncoderEntry, 256> encoder_table(const Frequencies& frequencies) {
  std::array<EncoderEntry, 256> table{};
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (frequencies[i] > 0) table[i] = entry_of(frequencies[i], start);
    start += frequencies[i];
  }
  return table;
}

void put(std::byte*& at, std::uint32_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) *at++ = static_cast<std::byte>(value >> (8 * i));
}

constexpr std::size_t kMostTableBytes = 1 + 256 * 3;

std::size_t write_table(const Frequencies& frequencies, std::byte* out) {
  std::byte* at = out + 1;
  std::size_t used = 0;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    if (frequencies[i] == 0) continue;
    ++used;
    put(at, static_cast<std::uint32_t>(i), 1);
    if (frequencies[i] < 128) {
      put(at, frequencies[i], 1);
    } else {
      put(at, 128 | (frequencies[i] & 127), 1);
      put(at, frequencies[i] >> 7, 1);
    }
  }
  *out = static_cast<std::byte>(used - 1);
  return static_cast<std::size_t>(at - out);
}

// An entry for each slot: its symbol, the symbol's frequency (12 bits), and the slot's place within
// that (12 bits).
using DecoderTable = std::array<std::uint32_t, kScale>;

// Returns the size of the table at the front of `coded`; 0 if there is no valid table.
std::size_t read_table(ByteView coded, DecoderTable& table) {
  std::size_t at = 1;
  if (coded.empty()) return 0;
  const std::size_t used = std::to_integer<std::size_t>(coded[0]) + 1;
  std::uint32_t slot = 0;
  int last = -1;
  for (std::size_t i = 0; i < used; ++i) {
    if (at + 2 > coded.size()) return 0;
    const int symbol = std::to_integer<int>(coded[at++]);
    std::uint32_t frequency = std::to_integer<std::uint32_t>(coded[at++]);
    if (frequency >= 128) {
      if (at == coded.size()) return 0;
      frequency = (frequency & 127) | std::to_integer<std::uint32_t>(coded[at++]) << 7;
    }
    if (symbol <= last || frequency == 0 || frequency > kScale - slot || frequency == kScale)
      return 0;
    for (std::uint32_t k = 0; k < frequency; ++k, ++slot) {
      table[slot] = static_cast<std::uint32_t>(symbol) | frequency << 8 | k << 20;
    }
    last = symbol;
  }
  return slot == kScale ? at : 0;
}

std::uint32_t load_word(const std::byte* at) {
  return std::to_integer<std::uint32_t>(at[0]) | std::to_integer<std::uint32_t>(at[1]) << 8;
}

}  // namespace

Histogram histogram_of(ByteView in) {
  // Several counters, so that equal bytes in a row do not wait for each other.
  std::array<Histogram, 4> parts{};
  std::size_t i = 0;
  for (; i + 4 <= in.size(); i += 4) {
    for (std::size_t part = 0; part < 4; ++part)
      ++parts[part][std::to_integer<std::size_t>(in[i + part])];
  }
  for (; i < in.size(); ++i) ++parts[0][std::to_integer<std::size_t>(in[i])];
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    parts[0][symbol] += parts[1][symbol] + parts[2][symbol] + parts[3][symbol];
  }
  return parts[0];
}

double entropy_bytes(const Histogram& histogram) {
  double all = 0, bits = 0;
  for (const std::uint32_t count : histogram) all += count;
  for (const std::uint32_t count : histogram) {
    if (count > 0) bits += count * std::log2(all / count);
  }
  return bits / 8;
}

std::size_t rans_encode(ByteView in, const Histogram& histogram, ByteVector& scratch,
                        MutableBytes out) {
  // A symbol emits at most one word.
  scratch.resize(std::max(scratch.size(), (in.size() + 1) * kWordBytes));
  const Frequencies frequencies = scaled(histogram);
  const auto table = encoder_table(frequencies);
  std::array<std::uint32_t, kStates> states;
  states.fill(kLeastState);
  std::byte* const end = scratch.data() + scratch.size();
  std::byte* at = end;
  const auto encode = [&](std::uint32_t& state, std::byte symbol) {
    const EncoderEntry& entry = table[std::to_integer<std::size_t>(symbol)];
    // Here and below there is no branch, because it could not be predicted.
    const auto full = static_cast<std::uint32_t>(state >= entry.limit);
    at[-2] = static_cast<std::byte>(state);
    at[-1] = static_cast<std::byte>(state >> 8);
    at -= full * kWordBytes;
    state >>= full * 16;
    const auto quotient =
        static_cast<std::uint32_t>(std::uint64_t{state} * entry.reciprocal >> entry.shift);
    state += std::uint32_t{entry.bias} + quotient * entry.complement;
  };
  std::size_t i = in.size();
  while (i % kStates != 0) {
    --i;
    encode(states[i % kStates], in[i]);
  }
  while (i > 0) {
    i -= kStates;
    for (std::size_t k = kStates; k-- > 0;) encode(states[k], in[i + k]);
  }
  std::array<std::byte, kMostTableBytes + kStates * 4> front;
  std::byte* front_end = front.data() + write_table(frequencies, front.data());
  for (const std::uint32_t state : states) put(front_end, state, 4);
  const auto front_bytes = static_cast<std::size_t>(front_end - front.data());
  const auto word_bytes = static_cast<std::size_t>(end - at);
  if (front_bytes + word_bytes > out.size()) return 0;
  std::memcpy(out.data(), front.data(), front_bytes);
  if (word_bytes > 0) std::memcpy(out.data() + front_bytes, at, word_bytes);
  return front_bytes + word_bytes;
}

bool rans_decode(ByteView coded, MutableBytes out) {
  DecoderTable table;
  const std::size_t table_bytes = read_table(coded, table);
  if (table_bytes == 0 || coded.size() - table_bytes < kStates * 4) return false;
  const std::byte* at = coded.data() + table_bytes;
  const std::byte* const end = coded.data() + coded.size();
  std::array<std::uint32_t, kStates> states;
  for (std::uint32_t& state : states) {
    state = load_word(at) | load_word(at + 2) << 16;
    if (state < kLeastState) return false;
    at += 4;
  }
  const auto symbol_of = [&table](std::uint32_t& state) {
    const std::uint32_t entry = table[state & (kScale - 1)];
    state = (entry >> 8 & (kScale - 1)) * (state >> kScaleBits) + (entry >> 20);
    return static_cast<std::byte>(entry & 0xff);
  };
  std::size_t i = 0;
  while (i + kStates <= out.size() &&
         end - at >= static_cast<std::ptrdiff_t>(kStates * kWordBytes)) {
    for (std::size_t k = 0; k < kStates; ++k) {
      out[i + k] = symbol_of(states[k]);
      const auto low = static_cast<std::uint32_t>(states[k] < kLeastState);
      states[k] = states[k] << low * 16 | (load_word(at) & (0 - low));
      at += low * kWordBytes;
    }
    i += kStates;
  }
  for (; i < out.size(); ++i) {
    std::uint32_t& state = states[i % kStates];
    out[i] = symbol_of(state);
    if (state >= kLeastState) continue;
    if (end - at < static_cast<std::ptrdiff_t>(kWordBytes)) return false;
    state = state << 16 | load_word(at);
    at += kWordBytes;
  }
  return at == end &&
         std::ranges::all_of(states, [](std::uint32_t state) { return state == kLeastState; });
}

}  // namespace diapause::codec
