// diapause_mpi.h: the functions that need MPI.
#include "capi/instance.hpp"
#include "comm/mpi/mpi_comm.hpp"
#include "diapause/diapause_mpi.h"

using diapause::Code;
using diapause::fail;
using diapause::Status;

extern "C" int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out) {
  return diapause::capi::guarded([&]() -> Status {
    if (out == nullptr) return fail(Code::argument, "the place for the handle is NULL");
    *out = nullptr;
    if (name == nullptr) return fail(Code::argument, "the instance's name is NULL");
    DIAPAUSE_TRY_ASSIGN(std::unique_ptr<diapause::comm::Comm> ranks, diapause::comm::make_mpi_comm(comm));
    diapause_t* opened = nullptr;
    DIAPAUSE_TRY(diapause::capi::open(std::move(ranks), name, config_path, &opened));
    std::unique_ptr<diapause_t> instance(opened);
    const auto role = opened->rank.engine ? diapause::comm::Role::computes : diapause::comm::Role::set_aside;
    DIAPAUSE_TRY_ASSIGN(instance->program_comm, diapause::comm::make_program_comm(comm, role));
    *out = instance.release();
    return {};
  });
}

extern "C" int diapause_comm(const diapause_t* instance, MPI_Comm* comm) {
  return diapause::capi::guarded([&]() -> Status {
    if (comm == nullptr) return fail(Code::argument, "the place for the communicator is NULL");
    *comm = MPI_COMM_NULL;
    if (instance == nullptr) return fail(Code::argument, "the instance is NULL");
    if (!instance->program_comm) return fail(Code::argument, "the instance was opened without a communicator");
    *comm = *static_cast<const MPI_Comm*>(instance->program_comm.get());
    return {};
  });
}
