#include <fmt/core.h>

#include "cli/text.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {

int complain(const std::string& message) {
  fmt::print(stderr, "diapause: {}\n", printable(message));
  return kTrouble;
}

void note(const std::string& text) { fmt::print(stderr, "diapause: {}\n", printable(text)); }

}  // namespace diapause::cli
