#include <fmt/core.h>

#include <cerrno>
#include <cstdio>

#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

int complain(const std::string& message) {
  fmt::print(stderr, "diapause: {}\n", printable(message));
  return kTrouble;
}

int settle_output(int status) {
  errno = 0;
  const bool is_written = std::fflush(stdout) == 0;
  const int reason = errno;
  if ((is_written && std::ferror(stdout) == 0) || sys::is_deserted(stdout)) return status;
  const std::string what = "cannot write standard output";
  return complain(is_written ? what : os_error(what, reason).message);
}

void note(const std::string& text) { fmt::print(stderr, "diapause: {}\n", printable(text)); }

}  // namespace diapause::cli
