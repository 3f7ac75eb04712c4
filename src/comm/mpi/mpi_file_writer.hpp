// Files that the ranks of a communicator write together, by MPI-IO.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/file_writer.hpp"

namespace diapause::comm {

// `comm` must outlive the writer.
std::unique_ptr<FileWriter> make_mpi_file_writer(MPI_Comm comm);

}  // namespace diapause::comm
