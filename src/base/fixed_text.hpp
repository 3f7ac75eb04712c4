// Texts in arrays of a fixed size, for structs that are copied between processes as bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace diapause {

// Copies `text` into `to` and ends it with a zero byte. `to` must not be empty; a text that is too
// long for it is cut.
inline void put_text(std::span<char> to, std::string_view text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

// Returns the text up to the first zero byte, or all of `from` if there is none.
inline std::string get_text(std::span<const char> from) {
  return {from.data(),
          static_cast<std::size_t>(std::find(from.begin(), from.end(), '\0') - from.begin())};
}

}  // namespace diapause
