/* A program that was compiled with FTI's own header, and is only linked again: what it passes is
 * declared here, with the sizes and the order of FTI 1.6, and our header is not seen.
 * relinked_fti CONFIGURATION. */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "expect.h"

typedef int fti_id_t;
typedef enum { kAttributeName = 1, kAttributeDimensions = 2 } attribute_flag;
typedef struct {
  struct {
    int dims;
    int64_t count[32];
  } dim;
  char name[256];
} attribute_t;
typedef struct {
  int id;
  char name[256];
  char full_name[256];
  int children;
  int child[256];
  int64_t of_hdf5; /* where FTI is built with HDF5 */
} group_t;
typedef struct {
  bool flags[5];
  int dcp[2];
  char file[256];
  int numbers[11];
  int io_mode;
  char rest[56640]; /* what our header leaves out */
} configurations_t;

extern MPI_Comm FTI_COMM_WORLD;
extern fti_id_t FTI_DBLE, FTI_INTG;
int FTI_Init(const char*, MPI_Comm);
int FTI_Status(void);
int FTI_Protect(int, void*, int64_t, fti_id_t);
int FTI_SetAttribute(int, attribute_t, attribute_flag);
int FTI_Checkpoint(int, int);
int FTI_Recover(void);
int FTI_InitICP(int, int, bool);
int FTI_AddVarICP(int);
int FTI_FinalizeICP(void);
int64_t FTI_GetStoredSize(int);
fti_id_t FTI_InitCompositeType(const char*, size_t, group_t*);
int FTI_AddScalarField(fti_id_t, const char*, fti_id_t, int64_t);
int FTI_InitGroup(group_t*, const char*, group_t*);
configurations_t FTI_GetConfig(const char*, MPI_Comm);
int FTI_Finalize(void);

int main(int argc, char** argv) {
  int number = 3;
  double field[50] = {1, 2};
  attribute_t attribute = {{2, {5, 10}}, "field"};
  group_t group;
  MPI_Init(&argc, &argv);
  EXPECT(FTI_Init(argv[1], MPI_COMM_WORLD) == 0 && FTI_Status() == 0);
  const configurations_t read = FTI_GetConfig(argv[1], FTI_COMM_WORLD);
  EXPECT(read.io_mode == 1001 && strcmp(read.file, argv[1]) == 0);
  memset(&group, 7, sizeof group);
  EXPECT(FTI_InitGroup(&group, "group", NULL) == 0 && group.of_hdf5 == 0x0707070707070707);
  const fti_id_t type = FTI_InitCompositeType("number", sizeof number, &group);
  EXPECT(FTI_AddScalarField(type, "number", FTI_INTG, 0) == 0);
  EXPECT(FTI_Protect(1, field, 50, FTI_DBLE) == 0 && FTI_Protect(2, &number, 1, type) == 0);
  EXPECT(FTI_SetAttribute(1, attribute, kAttributeName | kAttributeDimensions) == 0);
  EXPECT(FTI_Checkpoint(1, 1) == 1);
  number = 4;
  EXPECT(FTI_InitICP(2, 4, true) == 0 && FTI_AddVarICP(1) == 0 && FTI_AddVarICP(2) == 0 &&
         FTI_FinalizeICP() == 0);
  memset(field, 0, sizeof field);
  number = 0;
  EXPECT(FTI_Recover() == 0 && field[1] == 2 && number == 4 && FTI_GetStoredSize(1) == 400);
  EXPECT(FTI_Finalize() == 0);
  MPI_Finalize();
  return 0;
}
