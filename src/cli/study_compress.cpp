// `diapause study compress`: starts the Python package, which runs `study encode` for each field,
// fits and draws.
#include <fmt/format.h>

#include "cli/python.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

int study_compress(const StudyCompressArguments& arguments) {
  std::vector<std::string> words = {"study-compress",
                                    "--encoder=" + sys::own_program(),
                                    "--output=" + arguments.output,
                                    "--actuator=" + arguments.actuator,
                                    "--machine=" + arguments.machine,
                                    fmt::format("--seconds={}", arguments.seconds),
                                    fmt::format("--repetitions={}", arguments.repetitions),
                                    fmt::format("--dump-gb={}", arguments.dump_gb)};
  if (arguments.is_dry_run) words.emplace_back("--dry-run");
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    if (!values.empty()) words.push_back(fmt::format("--{}={}", option, fmt::join(values, ",")));
  };
  add("codecs", arguments.codecs);
  add("bounds", arguments.bounds);
  add("clocks", arguments.clocks);
  if (!arguments.directory.empty()) words.push_back("--directory=" + arguments.directory);
  words.emplace_back("--");
  words.insert(words.end(), arguments.fields.begin(), arguments.fields.end());
  return become_python(words);
}

}  // namespace diapause::cli
