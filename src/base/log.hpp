// Where messages go. The library never prints to standard output.
#pragma once

#include <functional>
#include <string>

namespace diapause {

enum class Severity : int { error = 0, warning = 1, information = 2 };

// Called from the thread that has something to say. Must not throw.
using LogSink = std::function<void(Severity, const std::string& message)>;

// Writes "diapause: warning: <message>\n" to standard error, in one write; information is dropped.
LogSink standard_error_sink();

}  // namespace diapause
