/* Diapause on an MPI communicator. A program with MPI includes this header, alone or in any
 * order with diapause.h and diapause.hpp, and links diapause_mpi. */
#ifndef DIAPAUSE_DIAPAUSE_MPI_H
#define DIAPAUSE_DIAPAUSE_MPI_H

#include <mpi.h>

#include "diapause/diapause.h"

/* The MPI implementation that this file is compiled with. Implementations whose handles are
 * alike have one name. */
#if defined(OPEN_MPI) || defined(OMPI_MAJOR_VERSION)
#define DIAPAUSE_MPI_NAME "Open MPI"
#elif defined(MPICH_NUMVERSION) || defined(MPICH_VERSION) || defined(I_MPI_VERSION) || \
    defined(MVAPICH2_VERSION)
#define DIAPAUSE_MPI_NAME "MPICH"
#else
#define DIAPAUSE_MPI_NAME "another MPI"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opens an instance on all ranks of `comm`. The library duplicates `comm` and does not use it
 * otherwise. `name` and `config_path` are those of diapause_open, and are equal on all ranks.
 * Collective.
 *
 * MPI must be initialised, and must be the one that the library was built with; if the program
 * was compiled with another one, DIAPAUSE_ERR_ARGUMENT names both. MPI_Finalize closes an
 * instance that is still open. Its handle is then valid for diapause_close alone, which returns
 * the status of that closing. */
DIAPAUSE_INLINE int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path,
                                      diapause_t** out);

/* Opens an instance as diapause_mpi_open does, with options; `options` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_mpi_open_with(MPI_Comm comm, const char* name,
                                           const diapause_open_options* options, diapause_t** out);

/* Opens an instance as diapause_mpi_open does, on a communicator of Fortran: an INTEGER, or the
 * MPI_VAL of a TYPE(MPI_Comm). Collective. */
DIAPAUSE_API int diapause_mpi_open_f(MPI_Fint comm, const char* name, const char* config_path,
                                     diapause_t** out);

/* Gives the communicator that the program computes on: it holds the ranks that compute, in the
 * order of the communicator given to diapause_mpi_open. It belongs to the instance and is gone when
 * the instance is closed. The library sends no messages on it. Not collective.
 *
 * With async.mode = "rank" the last rank of each node is dedicated to the work that remains
 * after captures. `*comm` is MPI_COMM_NULL there. Such a rank calls diapause_close next, which
 * returns when all ranks of its node have closed; all other calls return DIAPAUSE_ERR_ARGUMENT.
 * In the other modes there are no dedicated ranks. */
DIAPAUSE_API int diapause_comm(const diapause_t* instance, MPI_Comm* comm);

/* Gives the same communicator as a handle of Fortran. */
DIAPAUSE_API int diapause_comm_f(const diapause_t* instance, MPI_Fint* comm);

/* The inline functions call this one. `comm` is the address of an MPI_Comm of `comm_bytes`, and
 * `mpi_name` is DIAPAUSE_MPI_NAME, both as the program was compiled. */
DIAPAUSE_API int diapause_mpi_open_sized(const void* comm, size_t comm_bytes, const char* mpi_name,
                                         const char* name, const diapause_open_options* options,
                                         size_t options_bytes, diapause_t** out);

DIAPAUSE_INLINE int diapause_mpi_open_with(MPI_Comm comm, const char* name,
                                           const diapause_open_options* options, diapause_t** out) {
  return diapause_mpi_open_sized(&comm, sizeof comm, DIAPAUSE_MPI_NAME, name, options,
                                 sizeof *options, out);
}

DIAPAUSE_INLINE int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path,
                                      diapause_t** out) {
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_path = config_path;
  return diapause_mpi_open_with(comm, name, &options, out);
}

#ifdef __cplusplus
}

#include <type_traits>

namespace diapause {
inline namespace cpp {

/* The parts of MPI that an Instance of diapause.hpp needs. */
template <class Dependent>
struct IncludeDiapauseMpiH;
template <>
struct IncludeDiapauseMpiH<void> {
  static int open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out) {
    return diapause_mpi_open(comm, name, config_path, out);
  }
  static int comm(const diapause_t* instance, MPI_Comm* comm) {
    return diapause_comm(instance, comm);
  }
  using Comm = MPI_Comm;
};

}  // namespace cpp
}  // namespace diapause
#endif

#endif
