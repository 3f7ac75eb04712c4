// Comm over MPI. The only code that calls MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"

namespace diapause::comm {

// Duplicates `parent`; errors on the duplicate are returned, not fatal. Collective. Code::comm if MPI is not running.
Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent);

}  // namespace diapause::comm
