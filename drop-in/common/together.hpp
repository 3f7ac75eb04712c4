// Failures of one rank that all ranks of a communicator have to share.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

namespace diapause::drop_in {

// Throws std::runtime_error on all ranks if `failure` is not empty on one of them: there it is the
// text. Collective.
void agree(MPI_Comm comm, const std::string& failure);
// Calls `body`, which must not communicate over `comm`. If it throws on one rank, all ranks throw.
// Collective.
void together(MPI_Comm comm, const std::function<void()>& body);

}  // namespace diapause::drop_in
