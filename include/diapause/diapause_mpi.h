/* Diapause on an MPI communicator. Include this instead of diapause.h, or before or after it or diapause.hpp, and link
 * diapause_mpi. */
#ifndef DIAPAUSE_DIAPAUSE_MPI_H
#define DIAPAUSE_DIAPAUSE_MPI_H

#include <mpi.h>

#include "diapause/diapause.h"

/* The MPI that this file is compiled with, as far as its handles go: implementations of one name share theirs. */
#if defined(OPEN_MPI) || defined(OMPI_MAJOR_VERSION)
#define DIAPAUSE_MPI_NAME "Open MPI"
#elif defined(MPICH_NUMVERSION) || defined(MPICH_VERSION) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION)
#define DIAPAUSE_MPI_NAME "MPICH"
#else
#define DIAPAUSE_MPI_NAME "another MPI"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opens an instance on all ranks of `comm`, which is duplicated and not used otherwise. `name` and `config_path` as in
 * diapause_open and equal on all ranks. MPI must be initialised, and be the one that the library was built with:
 * DIAPAUSE_ERR_ARGUMENT names both if the program was compiled with another one. An instance that is still open when
 * MPI_Finalize is called is closed by that; its handle is then good for diapause_close alone, which returns what
 * closing has returned. Collective. */
DIAPAUSE_INLINE int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out);

/* The same with options; NULL: none. */
DIAPAUSE_INLINE int diapause_mpi_open_with(MPI_Comm comm, const char* name, const diapause_open_options* options,
                                           diapause_t** out);

/* The same for a communicator of Fortran, an INTEGER or the MPI_VAL of a TYPE(MPI_Comm). */
DIAPAUSE_API int diapause_mpi_open_f(MPI_Fint comm, const char* name, const char* config_path, diapause_t** out);

/* Gives the communicator that the program computes on. With async.mode = "rank" the last rank of each node is set aside
 * to do what comes behind the captures: `*comm` is MPI_COMM_NULL there, and such a rank calls diapause_close next,
 * which returns when all ranks of its node have closed; other calls return DIAPAUSE_ERR_ARGUMENT. On all other ranks,
 * and everywhere in the other modes, it holds the ranks that compute, in the order of the communicator given to
 * diapause_mpi_open. It belongs to the instance, is gone when that is closed, and carries nothing of Diapause's. */
DIAPAUSE_API int diapause_comm(const diapause_t* instance, MPI_Comm* comm);

/* The same for Fortran. */
DIAPAUSE_API int diapause_comm_f(const diapause_t* instance, MPI_Fint* comm);

/* What the functions above are made of. `comm` is the address of an MPI_Comm of `comm_bytes`, and `mpi_name` is
 * DIAPAUSE_MPI_NAME, both as the program was compiled. */
DIAPAUSE_API int diapause_mpi_open_sized(const void* comm, size_t comm_bytes, const char* mpi_name, const char* name,
                                         const diapause_open_options* options, size_t options_bytes, diapause_t** out);

DIAPAUSE_INLINE int diapause_mpi_open_with(MPI_Comm comm, const char* name, const diapause_open_options* options,
                                           diapause_t** out) {
  return diapause_mpi_open_sized(&comm, sizeof comm, DIAPAUSE_MPI_NAME, name, options, sizeof *options, out);
}

DIAPAUSE_INLINE int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out) {
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_path = config_path;
  return diapause_mpi_open_with(comm, name, &options, out);
}

#ifdef __cplusplus
}

#include <type_traits>

namespace diapause {
inline namespace cpp {

/* What an Instance of diapause.hpp needs of MPI. */
template <class Dependent>
struct IncludeDiapauseMpiH;
template <>
struct IncludeDiapauseMpiH<void> {
  static int open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out) {
    return diapause_mpi_open(comm, name, config_path, out);
  }
  static int comm(const diapause_t* instance, MPI_Comm* comm) { return diapause_comm(instance, comm); }
  using Comm = MPI_Comm;
};

}  // namespace cpp
}  // namespace diapause
#endif

#endif
