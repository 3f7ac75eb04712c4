// Comparing megabytes, for which loops take long in tests: these are not optimised, and some are
// built with sanitizers that check every access.
#pragma once

#include <cstring>

#include "base/bytes.hpp"

namespace diapause::test_support {

inline bool are_same(ByteView one, ByteView other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

}  // namespace diapause::test_support
