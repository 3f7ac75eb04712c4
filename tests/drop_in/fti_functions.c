/* Tests what FTI's functions promise, on each rank alike: fti_functions CONFIGURATION STAGED
 * begin|continue|hold|stay|recover|twice. The run that begins ends without FTI_Finalize, as after a
 * crash. The one that holds takes one checkpoint, makes the file STAGED.<rank>, and calls nothing
 * more. The one that stays does so once it has begun. The one that does it twice begins again
 * with the configuration STAGED, and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fti.h"

enum { kCount = 1000 };

struct particle {
  double place[3];
  int kind;
};

static double* filled(int rank, int count) {
  double* const values = malloc((size_t)count * sizeof *values);
  for (int i = 0; i < count; ++i) values[i] = 1000 * rank + i;
  return values;
}

static int is_filled(const double* values, int rank, int count) {
  for (int i = 0; i < count; ++i) {
    if (values[i] != 1000 * rank + i) return 0;
  }
  return 1;
}

static fti_id_t particle_type(void) {
  int64_t three = 3;
  const fti_id_t type = FTI_InitCompositeType("particle", sizeof(struct particle), NULL);
  EXPECT(FTI_AddVectorField(type, "place", FTI_DBLE, offsetof(struct particle, place), 1, &three) ==
         FTI_SCES);
  EXPECT(FTI_AddScalarField(type, "kind", FTI_INTG, offsetof(struct particle, kind)) == FTI_SCES);
  EXPECT(FTI_AddScalarField(type, "outside", FTI_DBLE, sizeof(struct particle)) == FTI_NSCS);
  EXPECT(FTI_AddVectorField(type, "place", FTI_DBLE, 0, 1, NULL) == FTI_NSCS);
  return type;
}

static void read_configuration(const char* path) {
  const FTIT_allConfiguration read = FTI_GetConfig(path, FTI_COMM_WORLD);
  EXPECT(read.configuration.ioMode == FTI_IO_POSIX && read.configuration.test == 1 &&
         read.configuration.dcpMode == -1);
  EXPECT(!read.configuration.keepL4Ckpt && strcmp(read.configuration.cfgFile, path) == 0);
  EXPECT(FTI_GetConfig("there is no such file", FTI_COMM_WORLD).configuration.ioMode == -1);
}

/* As on a node whose disk cannot be written to any more. */
static void lose_stage_directory(int rank) {
  char folder[500];
  EXPECT(FTI_GetStageDir(folder, sizeof folder) == FTI_SCES);
  if (rank != 1) return;
  EXPECT(rmdir(folder) == 0);
  FILE* const file = fopen(folder, "w");
  EXPECT(file != NULL && fclose(file) == 0);
  EXPECT(FTI_GetStageDir(folder, sizeof folder) == FTI_NSCS);
}

/* What is told of variables is stored with them. */
static void describe(double* values) {
  fti_id_t opaque;
  FTIT_H5Group group;
  FTIT_attribute attribute = {{2, {25, 40}}, "temperature"};
  int64_t lengths[] = {25, 40}, other[] = {25, -40};
  EXPECT(FTI_InitType(&opaque, 8) == FTI_SCES);
  EXPECT(FTI_Protect(20, values, kCount, opaque) == FTI_SCES);
  EXPECT(FTI_InitGroup(&group, "physics", NULL) == FTI_SCES && strcmp(group.name, "physics") == 0);
  EXPECT(FTI_RenameGroup(&group, "all") == FTI_SCES && strcmp(group.name, "all") == 0);
  EXPECT(FTI_InitGroup(NULL, "none", NULL) == FTI_NSCS && FTI_RenameGroup(NULL, "") == FTI_NSCS);
  EXPECT(FTI_SetAttribute(20, attribute, FTI_ATTRIBUTE_NAME | FTI_ATTRIBUTE_DIM) == FTI_SCES);
  EXPECT(FTI_SetAttribute(21, attribute, FTI_ATTRIBUTE_DIM) == FTI_NSCS); /* nothing is protected */
  EXPECT(FTI_DefineDataset(20, 2, lengths, "field", &group) == FTI_SCES);
  EXPECT(FTI_DefineDataset(20, 2, other, "field", &group) == FTI_NSCS);
  EXPECT(FTI_DefineDataset(20, 1, lengths, "field", &group) == FTI_NSCS);
  EXPECT(FTI_DefineDataset(20, 2, NULL, "field", &group) == FTI_NSCS);
}

static void begin(int rank, const char* staged) {
  const int own_count = kCount + rank; /* another size on each rank */
  struct particle particle = {{1, 2, 3 + rank}, 4};
  fti_id_t opaque;
  EXPECT(FTI_Status() == 0);
  EXPECT(FTI_Protect(1, NULL, -1, FTI_INTG) == FTI_NSCS);
  EXPECT(FTI_Protect(1, &particle, 1, 999) == FTI_NSCS);
  EXPECT(FTI_InitType(&opaque, 0) == FTI_NSCS && FTI_InitType(NULL, 8) == FTI_NSCS);

  double* values = filled(rank, own_count);
  EXPECT(FTI_Protect(0, values, own_count, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Protect(7, &particle, 1, particle_type()) == FTI_SCES);
  const int named = FTI_setIDFromString("named");
  EXPECT(named >= 0 && FTI_getIDFromString("named") == named && FTI_getIDFromString("other") == -1);
  int number = 10;
  EXPECT(FTI_Protect(named, &number, 1, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_DONE);
  EXPECT(FTI_GetStoredSize(0) == own_count * (int64_t)sizeof(double) &&
         FTI_GetStoredSize(named) == sizeof number && FTI_GetStoredSize(3) == 0);
  EXPECT(FTI_Checkpoint(1, 0) == FTI_NSCS && FTI_Checkpoint(1, FTI_L4_H5_SINGLE) == FTI_NSCS);

  free(values); /* and protected anew elsewhere */
  values = filled(rank, own_count);
  EXPECT(FTI_Protect(0, values, own_count, FTI_DBLE) == FTI_SCES);
  number = 20;
  EXPECT(FTI_InitICP(1, FTI_L2, 0) == FTI_SCES && FTI_AddVarICP(0) == FTI_SCES &&
         FTI_FinalizeICP() == FTI_SCES);
  EXPECT(FTI_InitICP(1, FTI_L2, 1) == FTI_SCES);
  EXPECT(FTI_AddVarICP(named) == FTI_SCES);
  number = 30; /* too late for this checkpoint */
  EXPECT(FTI_AddVarICP(0) == FTI_SCES && FTI_AddVarICP(0) == FTI_NSCS &&
         FTI_AddVarICP(7) == FTI_SCES);
  double* const larger = calloc(2 * (size_t)own_count, sizeof *larger); /* as well */
  EXPECT(FTI_Protect(0, larger, 2 * own_count, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_FinalizeICP() == FTI_SCES);
  free(larger);
  EXPECT(FTI_InitICP(1, 99, 1) == FTI_NSCS && FTI_AddVarICP(0) == FTI_NSCS &&
         FTI_FinalizeICP() == FTI_NSCS);
  EXPECT(FTI_Protect(0, NULL, own_count, FTI_DBLE) == FTI_SCES); /* memory is to follow */
  EXPECT(FTI_InitICP(1, FTI_L1, 1) == FTI_SCES && FTI_AddVarICP(0) == FTI_NSCS &&
         FTI_FinalizeICP() == FTI_NSCS);
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_NSCS);
  if (rank != 1) EXPECT(FTI_Protect(0, values, own_count, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_NSCS); /* one rank still has none */
  EXPECT(FTI_Protect(0, values, own_count, FTI_DBLE) == FTI_SCES);

  char folder[500], from[600], to[600];
  EXPECT(FTI_GetStageDir(folder, 1) == FTI_NSCS &&
         FTI_GetStageDir(folder, sizeof folder) == FTI_SCES);
  snprintf(from, sizeof from, "%s/file", folder);
  snprintf(to, sizeof to, "%s.%d", staged, rank);
  FILE* const file = fopen(from, "w");
  EXPECT(file != NULL && fputs("staged", file) >= 0 && fclose(file) == 0);
  const int sent = FTI_SendFile(from, to);
  EXPECT(sent >= 0 && FTI_GetStageStatus(sent) == FTI_SI_SCES &&
         FTI_GetStageStatus(sent + 1) == FTI_SI_NINI);
  EXPECT(FTI_SendFile(from, to) == FTI_NSCS); /* it is not there any more, and no head is to ask */
  EXPECT(access(to, R_OK) == 0 && access(from, R_OK) != 0);
  free(values);
}

static void go_on(int rank) {
  const int own_count = kCount + rank;
  EXPECT(FTI_Status() == 1);
  EXPECT(FTI_GetStoredSize(0) == own_count * (int64_t)sizeof(double) && FTI_GetStoredSize(3) == 0);
  int number = 0;
  struct particle particle = {{0, 0, 0}, 0};
  double* values = malloc(sizeof *values);
  EXPECT(FTI_Protect(0, values, 1, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Recover() == FTI_NREC); /* not all is protected, and not of its size */
  EXPECT(FTI_Protect(0, NULL, own_count, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_RecoverVarInit() == FTI_SCES && FTI_RecoverVar(0) == FTI_NREC &&
         FTI_RecoverVarFinalize() == FTI_SCES);
  EXPECT(FTI_Protect(0, values, 1, FTI_DBLE) == FTI_SCES);
  values = FTI_Realloc(0, values);
  const int named = FTI_getIDFromString("named");
  EXPECT(FTI_RecoverVarInit() == FTI_SCES && FTI_RecoverVar(named) == FTI_NREC);
  EXPECT(FTI_Protect(named, &number, 1, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_setIDFromString("named") == named);
  if (rank == 0)
    EXPECT(FTI_RecoverVar(named) == FTI_SCES && number == 20); /* no call of all ranks */
  EXPECT(FTI_RecoverVarFinalize() == FTI_SCES);
  EXPECT(FTI_Protect(7, &particle, 1, particle_type()) == FTI_SCES);
  EXPECT(FTI_Snapshot() == FTI_SCES); /* recovers */
  EXPECT(FTI_Status() == 0);
  EXPECT(is_filled(values, rank, own_count) && number == 20 && particle.kind == 4 &&
         particle.place[2] == 3 + rank);

  const double before = values[3];
  EXPECT(FTI_BitFlip(7) == FTI_NSCS); /* no floating point */
  EXPECT(FTI_BitFlip(0) == (rank == 1 ? FTI_SCES : FTI_NSCS));
  EXPECT((values[3] != before) == (rank == 1));
  EXPECT(FTI_BitFlip(0) == FTI_NSCS); /* only one was asked for */
  EXPECT(FTI_Snapshot() == FTI_SCES); /* none is due */
  EXPECT(FTI_Checkpoint(2, FTI_L4_DCP) == FTI_DONE);
  describe(values);
  lose_stage_directory(rank); /* FTI_Finalize succeeds all the same */
  free(values);
}

static void stay(int rank, const char* staged) {
  char path[600];
  snprintf(path, sizeof path, "%s.%d", staged, rank);
  FILE* const file = fopen(path, "w");
  EXPECT(file != NULL && fclose(file) == 0);
  for (;;) pause();
}

static void hold(int rank, const char* staged) {
  int number = 40 + rank;
  EXPECT(FTI_Protect(0, &number, 1, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_Checkpoint(1, FTI_L2) == FTI_DONE);
  stay(rank, staged);
}

static void begin_twice(int rank, const char* second) {
  int number = rank;
  EXPECT(FTI_Protect(0, &number, 1, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_DONE);
  char folder[500]; /* the configuration does not ask for staging */
  EXPECT(FTI_GetStageDir(folder, sizeof folder) == FTI_NSCS &&
         FTI_SendFile(second, "elsewhere") == FTI_NSCS && FTI_GetStageStatus(0) == FTI_NSCS);
  EXPECT(FTI_Init(second, MPI_COMM_WORLD) == FTI_SCES && FTI_Status() == 0);
}

static void recover(int rank) {
  int number = 0;
  EXPECT(FTI_Status() == 1);
  EXPECT(FTI_Protect(0, &number, 1, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_Recover() == FTI_SCES && number == 40 + rank);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  EXPECT(argc == 4);
  EXPECT(FTI_Checkpoint(1, 1) == FTI_NSCS);
  EXPECT(FTI_Init(argv[1], MPI_COMM_WORLD) == FTI_SCES);
  MPI_Comm_rank(FTI_COMM_WORLD, &rank);
  read_configuration(argv[1]);
  if (strcmp(argv[3], "begin") == 0) {
    begin(rank, argv[2]);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(argv[3], "hold") == 0) hold(rank, argv[2]);
  if (strcmp(argv[3], "stay") == 0) stay(rank, argv[2]);
  if (strcmp(argv[3], "recover") == 0) {
    recover(rank);
  } else if (strcmp(argv[3], "twice") == 0) {
    begin_twice(rank, argv[2]);
  } else {
    go_on(rank);
  }
  EXPECT(FTI_Finalize() == FTI_SCES);
  MPI_Barrier(FTI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
