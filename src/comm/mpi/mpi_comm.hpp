// The implementation of Comm over MPI. No other code calls MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"

namespace diapause::comm {

// Duplicates `parent` into a Comm. Errors of the duplicate are returned and not fatal. Collective.
// Returns Code::comm if MPI is not running.
Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent);

// Returns the communicator that the program computes on: the ranks of `parent` that compute, in
// their order there, and MPI_COMM_NULL on dedicated ranks. Its last owner frees it. Collective over
// `parent`.
enum class Role { computes, dedicated };
Result<std::shared_ptr<const MPI_Comm>> make_program_comm(MPI_Comm parent, Role role);

}  // namespace diapause::comm
