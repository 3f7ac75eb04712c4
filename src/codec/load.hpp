// Loads values from bytes at any alignment.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace diapause::codec {

template <class T>
inline T load(const std::byte* values, std::uint64_t index) {
  T value;
  std::memcpy(&value, values + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
inline T load(ByteView values, std::uint64_t index) {
  return load<T>(values.data(), index);
}

}  // namespace diapause::codec
