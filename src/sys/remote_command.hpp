// A command that runs at the other end of a connection, as with a remote shell: its standard
// streams and its status travel in frames of a type, a length, and data.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "sys/network.hpp"

namespace diapause::sys {

// The asking end: sends the command and forwards the standard streams of this process until the
// command has ended; its status then, as a shell gives it.
Result<int> run_remotely(Stream& stream, const std::string& command);

// The other end: reads a command, runs it by /bin/sh, and forwards its streams. Returns when it has
// ended, and nobody has its streams any more, or when the asking end is gone.
Status run_for_another(Stream& stream);

// Serves every connection to a listening socket that this process has inherited in a process of its
// own, by `serve`. Does not return.
[[noreturn]] void serve_forever(int listener, const std::function<void(Stream)>& serve);

// Lets the next program have the descriptor, too.
void let_inherit(int fd);

}  // namespace diapause::sys
