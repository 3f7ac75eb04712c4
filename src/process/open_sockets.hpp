// The sockets of a stored job, made again in this process.
#pragma once

#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "process/other_nodes.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Numbers beside Job::sockets, with what waits in them; the caller closes them, also those of a failure. Every
// connection has the addresses it had, but for a port of the connecting end that somebody else has by now: the kernel
// then gives another one, and `log` tells.
// The ends of Job::far_ends are left out.
Status open_sockets(const Job& job, const LogSink& log, std::vector<int>& sockets);
// Makes these, too, together with the other nodes. All other sockets are there already.
Status open_far_sockets(const Job& job, const LogSink& log, OtherNodes& others, std::vector<int>& sockets);

}  // namespace diapause::process
