// diapause_mpi.h: the one function that needs MPI.
#include "capi/instance.hpp"
#include "comm/mpi/mpi_comm.hpp"
#include "diapause/diapause_mpi.h"

extern "C" int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out) {
  using namespace diapause;
  return capi::guarded([&]() -> Status {
    if (out == nullptr) return fail(Code::argument, "the place for the handle is NULL");
    *out = nullptr;
    if (name == nullptr) return fail(Code::argument, "the instance's name is NULL");
    DIAPAUSE_TRY_ASSIGN(std::unique_ptr<comm::Comm> ranks, comm::make_mpi_comm(comm));
    return capi::open(std::move(ranks), name, config_path, out);
  });
}
