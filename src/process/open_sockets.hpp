// Makes the sockets of a stored job again in this process.
#pragma once

#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "process/other_nodes.hpp"
#include "process/relocation.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Fills in the numbers beside Job::sockets, and what waits in the sockets. The caller closes them,
// also after a failure. Every connection has the addresses that it had. If somebody else has the
// port of the connecting end by now, the kernel gives another one, and `log` tells of it. The ends
// of Job::far_ends are left out. Ports of listening sockets that have to change are changed in
// `job` and noted in `relocation`.
Status open_sockets(Job& job, const LogSink& log, Relocation& relocation,
                    std::vector<int>& sockets);
// Makes these, too, together with the other nodes. All other sockets are there already.
Status open_far_sockets(const Job& job, const LogSink& log, OtherNodes& others,
                        std::vector<int>& sockets);

}  // namespace diapause::process
