// The nodes of a launched job, as a user names them.
#pragma once

#include "agent/meeting.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Says whether a host may be named more than once, for several nodes of a job that is restarted.
enum class Repeated { refused, allowed };
// Code::argument for a host that is named twice and must not be, or if this machine is named but
// not as the first.
Result<agent::Nodes> nodes_of(const NodeArguments& arguments, Repeated repeated);

}  // namespace diapause::cli
