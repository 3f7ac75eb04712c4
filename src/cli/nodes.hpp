// The nodes of a launched job, as a user names them.
#pragma once

#include "agent/meeting.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Code::argument for a host that is named twice, or if this machine is named but not as the first.
Result<agent::Nodes> nodes_of(const NodeArguments& arguments);

}  // namespace diapause::cli
