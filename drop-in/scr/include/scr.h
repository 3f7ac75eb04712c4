/* The interface of SCR, made by Diapause: programs written for SCR build and run with this header
 * and the library beside it. Functions return SCR_SUCCESS or another number; standard error tells
 * why. Those marked collective are called by all ranks of MPI_COMM_WORLD, with the same arguments,
 * and return the same on all of them. */
#ifndef DIAPAUSE_DROP_IN_SCR_H
#define DIAPAUSE_DROP_IN_SCR_H

#ifdef __cplusplus
extern "C" {
#endif

/* The interface is that of this version of SCR. */
#define SCR_MAJOR_VERSION "3"
#define SCR_MINOR_VERSION "1"
#define SCR_PATCH_VERSION "0"
#define SCR_VERSION "v3.1.0"

#define SCR_SUCCESS (0)

/* Bytes of the longest path or name with its end. */
#define SCR_MAX_FILENAME 1024

/* The purposes of a dataset. They may be combined. */
#define SCR_FLAG_NONE 0
#define SCR_FLAG_CHECKPOINT 1 /* a restart can go on from it */
#define SCR_FLAG_OUTPUT 2     /* its files are to be at their own paths when it is complete */

/* Is called between MPI_Init and MPI_Finalize. Collective. */
int SCR_Init(void);
int SCR_Finalize(void);

/* "KEY=VALUE", or "CKPT=0 KEY=VALUE ...", sets what the environment and the configuration file do
 * not; it returns NULL. "KEY=" forgets a key. "KEY", or "CKPT=0 KEY", returns a copy of the value
 * that counts, which the caller frees, or NULL. A key that is set after SCR_Init has no effect.
 * SCR_Configf formats its text as printf does. */
const char* SCR_Config(const char* config);
const char* SCR_Configf(const char* format, ...);

/* Gives the path at which the program is to write or read the file `name` of the dataset that is
 * open, at most SCR_MAX_FILENAME bytes. Outside of a dataset, and before SCR_Init, it is `name`
 * itself. Directories on the way are made. Files of checkpoints have paths of up to 250 bytes below
 * the prefix directory. In a restart the name of a file without a path will do, if this rank has
 * one file of that name in the checkpoint. */
int SCR_Route_file(const char* name, char* file);

/* Tells whether there is a checkpoint to read, and its name; `name` may be NULL. A run may ask and
 * go back at any time. Collective. */
int SCR_Have_restart(int* flag, char* name);
int SCR_Start_restart(char* name);
/* If one rank's files are not `valid`, the call fails on all ranks, and SCR_Have_restart tells of
 * the checkpoint before, in later runs too. Collective. */
int SCR_Complete_restart(int valid);

/* Tells whether a checkpoint is due, as SCR_CHECKPOINT_INTERVAL, _SECONDS and _OVERHEAD say: where
 * none of them is set, only when the end of the allocation is near (SCR_Should_exit). Collective.
 */
int SCR_Need_checkpoint(int* flag);

/* Begins a dataset. If the name is NULL, one is made. Collective. */
int SCR_Start_output(const char* name, int flags);
/* If one rank's files are not `valid`, the call fails on all ranks, and there is no dataset.
 * Collective. */
int SCR_Complete_output(int valid);
/* The same for checkpoints without names. */
int SCR_Start_checkpoint(void);
int SCR_Complete_checkpoint(int valid);

/* Lets the next restart, of this run or a later one, begin with the checkpoint of that name, unless
 * another one is taken before. Those that were taken after it are left out until one is named.
 * Without a checkpoint of that name it says so and changes nothing. Collective. */
int SCR_Current(const char* name);
/* No restart takes the checkpoint of that name any more. Collective. */
int SCR_Drop(const char* name);
/* Does the same, and removes the output files that this run has written under that name.
 * Collective. */
int SCR_Delete(const char* name);

/* The version of the interface. */
char* SCR_Get_version(void);

/* Tells whether the end of the allocation is closer than SCR_HALT_SECONDS. Collective. */
int SCR_Should_exit(int* flag);

#ifdef __cplusplus
}
#endif

#endif
