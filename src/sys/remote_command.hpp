// Runs a command at the other end of a connection, as with a remote shell. Its standard streams and
// its status travel in frames of a type, a length, and data.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "sys/network.hpp"

namespace diapause::sys {

// Is the asking end. It sends the command and forwards the standard streams of this process until
// the command has ended, and returns its status then, as a shell gives it.
Result<int> run_remotely(Stream& stream, const std::string& command);

// Is the other end. It reads a command, runs it by /bin/sh, and forwards its streams. Returns when
// the command has ended, and nobody has its streams any more, or when the asking end is gone.
Status run_for_another(Stream& stream);

// Serves every connection to a listening socket that this process has inherited in a process of its
// own, by `serve`. Does not return.
[[noreturn]] void serve_forever(int listener, const std::function<void(Stream)>& serve);

// Lets the next program have the descriptor, too.
void let_inherit(int fd);

}  // namespace diapause::sys
