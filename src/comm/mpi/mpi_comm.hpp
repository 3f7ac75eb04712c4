// Comm over MPI. The only code that calls MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"

namespace diapause::comm {

// Duplicates `parent`; errors on the duplicate are returned, not fatal. Collective. Code::comm if MPI is not running.
Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent);

// A communicator for the program itself: of the ranks of `parent` that compute, in their order; MPI_COMM_NULL on the
// others. Freed with its last owner. Collective over `parent`.
enum class Role { computes, dedicated };
Result<std::shared_ptr<const MPI_Comm>> make_program_comm(MPI_Comm parent, Role role);

}  // namespace diapause::comm
