// Conversion between numbers and little-endian bytes, for files and for messages between ranks.
// Files are the same on every host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "format/ids.hpp"

namespace diapause::format {

// File offsets of the kernel are signed. Within this bound, the sum of two sizes fits in 64 bits.
inline constexpr std::uint64_t kMaxFileBytes = 0x7fffffffffffffff;

class Writer {
 public:
  explicit Writer(std::size_t expected_bytes) { bytes_.reserve(expected_bytes); }

  void u32(std::uint32_t value) { little_endian<4>(value); }
  void u64(std::uint64_t value) { little_endian<8>(value); }
  void text(std::string_view value) { append(as_byte_view(value)); }
  // Writes the length of a text before it.
  void sized_text(std::string_view value) {
    u64(value.size());
    text(value);
  }
  void append(ByteView data) { bytes_.insert(bytes_.end(), data.begin(), data.end()); }
  void digest(const Digest128& value) {
    u64(value.low);
    u64(value.high);
  }
  void commit(const CommitId& value) { append(as_byte_view(value.bytes)); }
  void zeros_up_to(std::size_t size) { bytes_.resize(size); }

  ByteView written() const { return bytes_; }
  ByteVector take() { return std::move(bytes_); }

 private:
  template <std::size_t kSize>
  void little_endian(std::uint64_t value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + kSize);
    for (std::size_t i = 0; i < kSize; ++i)
      bytes_[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
  ByteVector bytes_;
};

// Reads from the front. A read beyond the end returns zeros and makes ok() false for good, so that
// a decoder can read a fixed group of fields and check once. Before a loop whose length the input
// decides, call has_items().
class Reader {
 public:
  explicit Reader(ByteView data) : rest_(data) {}

  bool ok() const { return ok_; }
  std::size_t remaining() const { return rest_.size(); }
  // Returns whether `count` items of at least `item_bytes` (above 0) each can still follow.
  bool has_items(std::uint64_t count, std::uint64_t item_bytes) const {
    return count <= rest_.size() / item_bytes;
  }

  std::uint32_t u32() { return static_cast<std::uint32_t>(little_endian<4>()); }
  std::uint64_t u64() { return little_endian<8>(); }
  Digest128 digest() {
    const std::uint64_t low = u64();
    return {low, u64()};
  }
  CommitId commit() {
    CommitId id;
    const ByteView data = take(id.bytes.size());
    for (std::size_t i = 0; i < data.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(data[i]);
    return id;
  }
  std::string text(std::uint64_t length) {
    const ByteView data = take(length);
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
  std::string sized_text() {
    const std::uint64_t length = u64();
    return text(length);
  }
  // Returns the next `length` bytes, or an empty view if there are fewer.
  ByteView take(std::uint64_t length) {
    if (length > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const ByteView data = rest_.first(length);
    rest_ = rest_.subspan(length);
    return data;
  }

 private:
  template <std::size_t kSize>
  std::uint64_t little_endian() {
    const ByteView data = take(kSize);
    if (data.size() != kSize) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kSize; ++i)
      value |= std::to_integer<std::uint64_t>(data[i]) << (8 * i);
    return value;
  }
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace diapause::format
