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

#ifdef __cplusplus
}
#endif

#endif
