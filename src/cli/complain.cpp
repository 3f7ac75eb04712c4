#include <fmt/core.h>

#include "cli/text.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {

int complain(const std::string& message) {
  fmt::print(stderr, "diapause: {}\n", printable(message));
  return kTrouble;
}

}  // namespace diapause::cli
