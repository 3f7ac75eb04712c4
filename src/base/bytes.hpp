// Views of memory. Ownership stays with whoever made the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace diapause {

using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using ByteVector = std::vector<std::byte>;

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kMiB = std::uint64_t{1024} * 1024;

// Returns the smallest multiple of `unit` that is not below `value`. `unit` must be above 0, and
// the sum of both must not overflow.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

inline ByteView as_byte_view(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
template <class T>
ByteView as_byte_view(const T& object) requires std::is_trivially_copyable_v<T> {
  return std::as_bytes(std::span<const T, 1>(&object, 1));
}

}  // namespace diapause
