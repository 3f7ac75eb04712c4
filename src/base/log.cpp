#include "base/log.hpp"

#include <unistd.h>

namespace diapause {

LogSink standard_error_sink() {
  return [](Severity severity, const std::string& message) {
    if (severity == Severity::information) return;
    const std::string line =
        (severity == Severity::error ? "diapause: error: " : "diapause: warning: ") + message +
        "\n";
    // If standard error does not take the line, nothing can be done about it.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  };
}

}  // namespace diapause
