/* The interface of FTI, made by Diapause: programs written for FTI build and run with this header
 * and the library beside it. Functions return FTI_SCES or FTI_NSCS unless said otherwise; standard
 * error tells why. */
#ifndef DIAPAUSE_DROP_IN_FTI_H
#define DIAPAUSE_DROP_IN_FTI_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The values that functions return. */
#define FTI_SCES 0
#define FTI_DONE 1  /* a checkpoint was taken */
#define FTI_HEAD 2  /* this rank was a head, and the others have finished */
#define FTI_NSCS -1 /* not done */
#define FTI_NREC -2 /* nothing could be recovered */

/* Sizes of texts and words. */
#define FTI_BUFS 256
#define FTI_WORD 16

/* Says how far a file has come that FTI_SendFile took. */
#define FTI_SI_NINI 0x0 /* no such file is known */
#define FTI_SI_PEND 0x1
#define FTI_SI_ACTV 0x2
#define FTI_SI_SCES 0x3
#define FTI_SI_FAIL 0x4

/* The values that `ioMode` of FTI_GetConfig may have. */
#define FTI_IO_POSIX 1001
#define FTI_IO_MPI 1002
#define FTI_IO_FTIFF 1003
#define FTI_IO_SIONLIB 1004
#define FTI_IO_HDF5 1005
#define FTI_IO_IME 1006

#ifdef FTIX
#error "FTI's extensions (fti-ext.h: stash, callbacks of heads) are left out of this fti.h"
#endif

/* Messages to a head; a head of Diapause's needs none. */
#define FTI_REJW 996
#define FTI_ENDW 995

/* Memory for so many elements: programs use it as they find it in FTI's header. */
#ifndef talloc
#define talloc(type, count) ((type*)malloc(sizeof(type) * (size_t)(count)))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Levels: what FTI_Checkpoint takes. The differential ones other than FTI_L4_DCP are the plain
 * ones. */
typedef enum {
  FTI_L1 = 1,
  FTI_L2,
  FTI_L3,
  FTI_L4,
  FTI_L1_DCP,
  FTI_L2_DCP,
  FTI_L3_DCP,
  FTI_L4_DCP,
  FTI_L4_H5_SINGLE,
  FTI_MIN_LEVEL_ID = FTI_L1,
  FTI_MAX_LEVEL_ID = FTI_L4_H5_SINGLE
} FTIT_level;

typedef int fti_id_t;
#define FTIT_type fti_id_t
typedef int64_t FTIT_hsize_t;

/* A group of datasets: its name stands before theirs. */
typedef struct FTIT_H5Group {
  int id;
  char name[FTI_BUFS];
  char fullName[FTI_BUFS];
  int childrenNo;
  int childrenID[FTI_BUFS];
} FTIT_H5Group;

typedef struct FTIT_dimension {
  int ndims;
  int64_t count[32];
} FTIT_dimension;

typedef enum { FTI_ATTRIBUTE_NAME = 1 << 0, FTI_ATTRIBUTE_DIM = 1 << 1 } FTIT_attributeFlag;

typedef struct FTIT_attribute {
  FTIT_dimension dim;
  char name[FTI_BUFS];
} FTIT_attribute;

/* The contents of a configuration file. The members are in FTI's order, so a program that was
 * compiled with FTI's header may read them too; those of later names in FTI's struct are not here.
 */
typedef struct FTIT_configuration {
  bool stagingEnabled;
  bool dcpFtiff;
  bool dcpPosix;
  bool keepL4Ckpt;
  bool keepHeadsAlive;
  int dcpMode;
  int dcpBlockSize; /* in bytes */
  char cfgFile[FTI_BUFS];
  int saveLastCkpt;
  int verbosity;
  int blockSize;    /* in bytes */
  int transferSize; /* in bytes */
  int maxVarId;
  int ckptTag;
  int stageTag;
  int finalTag;
  int generalTag;
  int test; /* local_test */
  int l3WordSize;
  int ioMode; /* 1000 more than ckpt_io, or -1 if the file cannot be read */
} FTIT_configuration;

typedef struct FTIT_allConfiguration {
  FTIT_configuration configuration;
} FTIT_allConfiguration;

/* The ranks that compute; good from FTI_Init on, and after FTI_Finalize too. */
extern MPI_Comm FTI_COMM_WORLD;

/* Types of elements, from FTI_Init on. */
extern fti_id_t FTI_CHAR;
extern fti_id_t FTI_SHRT;
extern fti_id_t FTI_INTG;
extern fti_id_t FTI_LONG;
extern fti_id_t FTI_UCHR;
extern fti_id_t FTI_USHT;
extern fti_id_t FTI_UINT;
extern fti_id_t FTI_ULNG;
extern fti_id_t FTI_SFLT;
extern fti_id_t FTI_DBLE;
extern fti_id_t FTI_LDBE;

/* Begins, or begins again: FTI_NREC if the file says that there is something to recover and nothing
 * can be. With heads, the last rank of each node does not return until all have finished, and then,
 * unless keep_heads_alive is set, ends.
 */
int FTI_Init(const char* configFile, MPI_Comm globalComm);

/* Reads a configuration file, which need not be that of FTI_Init. Not collective. */
FTIT_allConfiguration FTI_GetConfig(const char* configFile, MPI_Comm globalComm);

/* 0: a fresh start, or all is recovered; 1: a restart; 2: a restart from the checkpoint that the
 * last run kept; 3: a restart from global datasets, which any number of ranks may have stored that
 * is not greater than that of this run. */
int FTI_Status();

/* Registers `count` elements, or registers the number anew. */
int FTI_Protect(int id, void* ptr, int64_t count, fti_id_t tid);
/* Names a variable and tells its dimensions, the contiguous one first. `diapause list` and `export`
 * show them. */
int FTI_SetAttribute(int id, FTIT_attribute attribute, FTIT_attributeFlag flag);

/* The number that goes by a name, a new one if there is none; or -1. Names are stored with the
 * data. */
int FTI_setIDFromString(const char* name);
int FTI_getIDFromString(const char* name);

/* Takes a checkpoint and returns FTI_DONE. `id` is for the log. FTI_L4_H5_SINGLE stores the global
 * datasets and nothing else, and returns FTI_SCES. Collective over FTI_COMM_WORLD. */
int FTI_Checkpoint(int id, int level);

/* Recovers in a restart, and otherwise takes the checkpoint that is due (FTI_DONE), if one is.
 * Collective. */
int FTI_Snapshot();

/* Everything that is registered, which must be what is stored. FTI_NREC if it cannot be: then
 * nothing has changed. In a restart, until its first checkpoint, each rank may call it alone.
 * Once this run has taken a checkpoint, the call takes back the last one. It is collective then,
 * which it is not in FTI: a rank that calls alone waits for the others. Where FTI_Status is 3, it
 * recovers the variables that are parts of global datasets, and is collective, too. */
int FTI_Recover();

/* Single variables, in a restart until its first checkpoint, and after FTI_Recover until the next
 * one. The first call is collective where FTI_Status is 3. */
int FTI_RecoverVarInit();
int FTI_RecoverVar(int id);
int FTI_RecoverVarFinalize();

/* Bytes that are stored of a variable, in the checkpoint that a restart recovers or that was taken
 * last; and memory of that size in place of `ptr`, which came from
 * malloc. */
int64_t FTI_GetStoredSize(int id);
void* FTI_Realloc(int id, void* ptr);

/* One checkpoint in parts: each variable as it is when it is added. All must be added. The last
 * call is collective, and returns FTI_SCES where FTI_Checkpoint returns FTI_DONE. */
int FTI_InitICP(int id, int level, bool activate);
int FTI_AddVarICP(int varID);
int FTI_FinalizeICP();

/* Flips a bit on purpose, as the section `injection` of the configuration says. */
int FTI_BitFlip(int datasetID);

/* Files of the program's own, written into the stage directory and moved to `rpath`: a number for
 * FTI_GetStageStatus. FTI_NSCS without `enable_staging`, and where a file cannot be moved and there
 * is no head. */
int FTI_GetStageDir(char* stageDir, int maxLen);
int FTI_SendFile(const char* lpath, const char* rpath);
int FTI_GetStageStatus(int ID);

/* Types of the program's own. */
int FTI_InitType(fti_id_t* type, int size);
fti_id_t FTI_InitCompositeType(const char* name, size_t size, FTIT_H5Group* h5g);
int FTI_AddScalarField(fti_id_t id, const char* name, fti_id_t fid, int64_t offset);
int FTI_AddVectorField(fti_id_t id, const char* name, fti_id_t tid, int64_t offset, int ndims,
                       int64_t* dim_sizes);

/* Names of variables with their dimensions, the slowest one first, and groups of names. */
int FTI_InitGroup(FTIT_H5Group* h5group, const char* name, FTIT_H5Group* parent);
int FTI_RenameGroup(FTIT_H5Group* h5group, const char* name);
int FTI_DefineDataset(int id, int rank, int64_t* dimLength, const char* name,
                      FTIT_H5Group* h5group);

/* Arrays of all ranks together: `dimLength` elements in `rank` dimensions, the slowest one first.
 * All ranks define them alike. A variable becomes the part `[offset, offset + count)` of dataset
 * `did`. */
int FTI_DefineGlobalDataset(int id, int rank, FTIT_hsize_t* dimLength, const char* name,
                            FTIT_H5Group* h5group, fti_id_t tid);
int FTI_AddSubset(int id, int rank, FTIT_hsize_t* offset, FTIT_hsize_t* count, int did);
int FTI_UpdateGlobalDataset(int id, int rank, FTIT_hsize_t* dimLength);
int FTI_UpdateSubset(int id, int rank, FTIT_hsize_t* offset, FTIT_hsize_t* count, int did);
/* Takes the lengths from what is stored, where FTI_Status is 3. */
int FTI_RecoverDatasetDimension(int did);
/* The lengths, which are good until the next call for this dataset, or NULL; and how many. */
FTIT_hsize_t* FTI_GetDatasetSpan(int did, int rank);
int FTI_GetDatasetRank(int did);

/* Waits for all checkpoints, keeps or removes them as the configuration says, and closes.
 * Collective. */
int FTI_Finalize();

#ifdef __cplusplus
}
#endif

#endif
