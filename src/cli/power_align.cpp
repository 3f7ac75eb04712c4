// `diapause power align`: starts the Python package, which correlates the power of an external
// meter with a trace.
#include <fmt/core.h>

#include "cli/python.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {

int power_align(const PowerAlignArguments& arguments) {
  std::vector<std::string> words = {"power-align", fmt::format("--within={}", arguments.within_s)};
  if (!arguments.column.empty()) words.push_back("--column=" + arguments.column);
  words.insert(words.end(), {"--", arguments.meter, arguments.trace});
  return become_python(words);
}

}  // namespace diapause::cli
