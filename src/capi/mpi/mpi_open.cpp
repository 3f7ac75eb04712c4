// The functions of diapause_mpi.h, which need MPI.
#include <fmt/core.h>

#include <cstring>
#include <string_view>

#include "capi/instance.hpp"
#include "comm/mpi/before_finalize.hpp"
#include "comm/mpi/mpi_comm.hpp"
#include "diapause/diapause_mpi.h"

namespace {

using diapause::Code;
using diapause::fail;
using diapause::Status;

// Refuses handles of another MPI, which are numbers where these are pointers, or vice versa: they
// must not be used.
Status check_mpi(std::string_view of_program, std::size_t comm_bytes) {
  if (of_program == DIAPAUSE_MPI_NAME && comm_bytes == sizeof(MPI_Comm)) return {};
  return fail(
      Code::argument,
      fmt::format("the program was compiled with {}, and this libdiapause_mpi with {}: link the "
                  "library that "
                  "was built with the program's MPI, or compile the program with the library's "
                  "(pkg-config --variable=mpicc diapause_mpi names its compiler)",
                  of_program, DIAPAUSE_MPI_NAME));
}

Status open_on(MPI_Comm comm, const char* name, const diapause_open_options& options,
               diapause_t** out) {
  namespace mpi = diapause::comm;
  if (name == nullptr) return fail(Code::argument, "the instance's name is NULL");
  DIAPAUSE_TRY_ASSIGN(std::unique_ptr<mpi::Comm> ranks, mpi::make_mpi_comm(comm));
  diapause_t* opened = nullptr;
  DIAPAUSE_TRY(diapause::capi::open(std::move(ranks), name, options, &opened));
  std::unique_ptr<diapause_t> instance(opened);
  const auto role = opened->rank.engine ? mpi::Role::computes : mpi::Role::dedicated;
  DIAPAUSE_TRY_ASSIGN(instance->program_comm, mpi::make_program_comm(comm, role));
  const auto close = [opened] {
    (void)diapause::capi::guarded(
        [&] { return diapause::capi::end(*opened, diapause::capi::End::of_instance); });
  };
  DIAPAUSE_TRY_ASSIGN(instance->before_finalize, mpi::call_before_finalize(close));
  *out = instance.release();
  return {};
}

}  // namespace

extern "C" int diapause_mpi_open_sized(const void* comm, size_t comm_bytes, const char* mpi_name,
                                       const char* name, const diapause_open_options* options,
                                       size_t options_bytes, diapause_t** out) {
  return diapause::capi::guarded([&]() -> Status {
    if (out == nullptr) return fail(Code::argument, "the place for the handle is NULL");
    *out = nullptr;
    if (comm == nullptr || mpi_name == nullptr)
      return fail(Code::argument, "the communicator or its MPI is NULL");
    DIAPAUSE_TRY(check_mpi(mpi_name, comm_bytes));
    MPI_Comm known = MPI_COMM_NULL;
    std::memcpy(&known, comm, sizeof known);
    return open_on(known, name, diapause::capi::known_options(options, options_bytes), out);
  });
}

extern "C" int diapause_mpi_open_f(MPI_Fint comm, const char* name, const char* config_path,
                                   diapause_t** out) {
  return diapause_mpi_open(MPI_Comm_f2c(comm), name, config_path, out);
}

extern "C" int diapause_comm(const diapause_t* instance, MPI_Comm* comm) {
  return diapause::capi::guarded([&]() -> Status {
    if (comm == nullptr) return fail(Code::argument, "the place for the communicator is NULL");
    *comm = MPI_COMM_NULL;
    if (instance == nullptr) return fail(Code::argument, "the instance is NULL");
    if (!instance->program_comm)
      return fail(Code::argument, "the instance was opened without a communicator");
    *comm = *static_cast<const MPI_Comm*>(instance->program_comm.get());
    return {};
  });
}

extern "C" int diapause_comm_f(const diapause_t* instance, MPI_Fint* comm) {
  MPI_Comm known = MPI_COMM_NULL;
  const int status = diapause_comm(instance, comm == nullptr ? nullptr : &known);
  if (comm != nullptr) *comm = MPI_Comm_c2f(known);
  return status;
}
