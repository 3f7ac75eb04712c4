/* The interface of VELOC, made by Diapause: programs written for VELOC build and run with this
 * header and the library beside it. Functions return VELOC_SUCCESS or VELOC_FAILURE unless said
 * otherwise; standard error tells why. With a communicator, checkpoints and restarts are collective
 * over it. */
#ifndef DIAPAUSE_DROP_IN_VELOC_H
#define DIAPAUSE_DROP_IN_VELOC_H

#include <mpi.h>
#include <string.h>

#include "veloc/defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A process has one client: of all ranks of `comm` together, or of this process by itself, with the
 * number `id`. If `cfg_file` is empty, everything comes from the environment. */
int VELOC_Init(MPI_Comm comm, const char* cfg_file);
int VELOC_Init_single(unsigned int id, const char* cfg_file);

/* Waits until all checkpoints are where they are to be, whatever `drain` says: no other process
 * would go on with it. */
int VELOC_Finalize(int drain);

/* Registers `count` elements of `base_size` bytes under a number, or registers the number anew.
 * Regions of a name belong to the checkpoints of that name; a checkpoint whose name has no regions
 * takes those without a name. */
int VELOC_Mem_protect(int id, void* ptr, size_t count, size_t base_size);
int VELOC_Region_protect(int id, void* ptr, size_t count, size_t base_size, const char* name);
int VELOC_Mem_unprotect(int id);
int VELOC_Region_unprotect(int id, const char* name);
int VELOC_Mem_clear();
int VELOC_Region_clear(const char* name);

/* Ends the checkpoints of that name on the nodes; those in the persistent directory stay. */
int VELOC_Cleanup(const char* name);

/* A checkpoint in one call, or in steps. */
int VELOC_Checkpoint(const char* name, int version);
int VELOC_Checkpoint_begin(const char* name, int version);
int VELOC_Checkpoint_mem();
int VELOC_Checkpoint_selective(int mode, int* ids, int id_count);
int VELOC_Checkpoint_end(int success);

/* Waits until the last checkpoint is where it is to be; or tells whether it is. */
int VELOC_Checkpoint_wait();
int VELOC_Checkpoint_finished();

/* The newest version at or below `version` (0: any) that all ranks can have; -1 if there is none.
 */
int VELOC_Restart_test(const char* name, int version);

/* A restart in one call, or in steps. Regions may be larger than what is stored for them, and not
 * smaller. */
int VELOC_Restart(const char* name, int version);
int VELOC_Restart_begin(const char* name, int version);
int VELOC_Recover_mem();
int VELOC_Recover_selective(int mode, int* ids, int id_count);
int VELOC_Restart_end(int success);

/* Bytes that are stored of a region; -1 if that is more than an int can say. 0: nothing. */
int VELOC_Recover_size(int id);

/* Tells where to write the rank's file between the beginning and the end of a checkpoint, and where
 * that file lies in a restart. Writes at most VELOC_MAX_NAME bytes to `routed`. Collective. */
int VELOC_Route_file(const char* original, char* routed);

#ifdef __cplusplus
}
#endif

#endif
