// The value of a result that a test cannot do without.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/result.hpp"

namespace diapause::test_support {

// Returns the value of a result. If the result is an error, the test ends here and has failed, so
// no value that does not exist is used.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace diapause::test_support
