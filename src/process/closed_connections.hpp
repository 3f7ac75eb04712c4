// Finds and ends connections that are closed and that the kernel keeps for a minute more
// (TIME-WAIT). No process has them any more. They keep their port from a listening socket that is
// made again, unless the program had set SO_REUSEADDR before it closed them.
#pragma once

#include <cstdint>
#include <vector>

#include "process/make_socket.hpp"

namespace diapause::process {

// Returns whether there are any at this port of this machine. A kernel that cannot tell has none.
bool has_closed_connections(std::uint16_t port);

// Ends those at this port whose other end was on this machine as well. For that it calls from the
// address of the other end: the kernel answers with what it remembers of the connection, the caller
// rejects that, and by this rejection the kernel forgets it (RFC 1337; net.ipv4.tcp_rfc1337
// prevents it). Returns the callers. The kernel may need a moment, so they must stay until the port
// has been tried again.
std::vector<Owned> end_closed_connections(std::uint16_t port);

}  // namespace diapause::process
