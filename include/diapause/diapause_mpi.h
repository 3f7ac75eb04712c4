/* Diapause on an MPI communicator. Include this instead of diapause.h and link diapause_mpi. */
#ifndef DIAPAUSE_DIAPAUSE_MPI_H
#define DIAPAUSE_DIAPAUSE_MPI_H

#include <mpi.h>

#include "diapause/diapause.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens an instance on all ranks of `comm`, which is duplicated and not used otherwise. MPI must be initialised and not
 * finalised before diapause_close. `name` and `config_path` as in diapause_open and equal on all ranks. Collective. */
DIAPAUSE_API int diapause_mpi_open(MPI_Comm comm, const char* name, const char* config_path, diapause_t** out);

/* Gives the communicator that the program computes on. With async.mode = "rank" the last rank of each node is set aside
 * to do what comes behind the captures: `*comm` is MPI_COMM_NULL there, and such a rank calls diapause_close next,
 * which returns when all ranks of its node have closed; other calls return DIAPAUSE_ERR_ARGUMENT. On all other ranks,
 * and everywhere in the other modes, it holds the ranks that compute, in the order of the communicator given to
 * diapause_mpi_open. It belongs to the instance, is gone when that is closed, and carries nothing of Diapause's. */
DIAPAUSE_API int diapause_comm(const diapause_t* instance, MPI_Comm* comm);

#ifdef __cplusplus
}
#endif

#endif
