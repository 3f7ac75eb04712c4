// Messages go to this sink. The library never prints to standard output.
#pragma once

#include <functional>
#include <string>

namespace diapause {

enum class Severity : int { error = 0, warning = 1, information = 2 };

// A sink is called from the thread that reports something. It must not throw.
using LogSink = std::function<void(Severity, const std::string& message)>;

// Returns a sink that writes "diapause: warning: <message>\n" to standard error in one write and
// drops messages of the severity `information`.
LogSink standard_error_sink();

}  // namespace diapause
