// Finds the programs that have a port of this machine.
#pragma once

#include <cstdint>
#include <string>

namespace diapause::process {

// Returns who has sockets at this port, as in "process 4711 (mpirun)". A process of another user
// may be told by that user only. The text is empty if nobody is found.
std::string holders_of_port(std::uint16_t port);

}  // namespace diapause::process
