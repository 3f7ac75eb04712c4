/* Global datasets of FTI: fti_datasets CONFIGURATION store|recover|select|miss, on any number of
 * ranks, of which those that recover cut the arrays in another way than those that stored them. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fti.h"

enum { kRows = 60, kColumns = 41, kParticles = 1000, kUpper = 0, kLower = 1, kCloud = 2 };

struct particle {
  double place[3];
  int kind;
};

static int rank, ranks;
static fti_id_t particle_type;

static int first_of(int count, int part) { return (int)((long)count * part / ranks); }

static double value_at(int64_t row, int64_t column) {
  return 1000.0 * (double)row + (double)column;
}

static void fill_field(double* field, const int64_t* start, const int64_t* shape) {
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
    field[i] = value_at(start[0] + i / shape[1], start[1] + i % shape[1]);
}

static int is_field(const double* field, const int64_t* start, const int64_t* shape) {
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    if (field[i] != value_at(start[0] + i / shape[1], start[1] + i % shape[1])) return 0;
  }
  return 1;
}

static void fill_cloud(struct particle* cloud, int64_t start, int64_t count) {
  memset(cloud, 0, (size_t)count * sizeof *cloud);
  for (int64_t i = 0; i < count; ++i) {
    cloud[i].place[2] = (double)(start + i) / 2;
    cloud[i].kind = (int)(start + i);
  }
}

static int is_cloud(const struct particle* cloud, int64_t start, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (cloud[i].place[2] != (double)(start + i) / 2 || cloud[i].kind != start + i) return 0;
  }
  return 1;
}

static void define_all(int64_t rows) {
  FTIT_H5Group outer, inner;
  int64_t lengths[] = {rows, kColumns}, particles = kParticles;
  EXPECT(FTI_InitType(&particle_type, sizeof(struct particle)) == FTI_SCES);
  EXPECT(FTI_InitGroup(&outer, "physics", NULL) == FTI_SCES);
  EXPECT(FTI_InitGroup(&inner, "matter", &outer) == FTI_SCES);
  EXPECT(FTI_DefineGlobalDataset(0, 2, lengths, "field", NULL, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_DefineGlobalDataset(7, 1, &particles, "cloud", &inner, particle_type) == FTI_SCES);
  EXPECT(FTI_DefineGlobalDataset(0, 2, lengths, "again", NULL, FTI_DBLE) == FTI_NSCS);
  EXPECT(FTI_DefineGlobalDataset(1, 2, lengths, "field", NULL, FTI_DBLE) == FTI_NSCS);
  EXPECT(FTI_DefineGlobalDataset(1, 0, NULL, "none", NULL, FTI_DBLE) == FTI_NSCS);
  EXPECT(FTI_DefineGlobalDataset(1, 2, lengths, "none", NULL, 999) == FTI_NSCS);
  EXPECT(FTI_GetDatasetRank(0) == 2 && FTI_GetDatasetRank(3) == FTI_NSCS);
  EXPECT(FTI_GetDatasetSpan(0, 3) == NULL && FTI_GetDatasetSpan(0, 2)[0] == rows);
}

/* The rows of this rank in two halves, which are one block together. */
static void add_field(void) {
  int64_t start[2] = {0, 0}, shape[2] = {0, kColumns}, whole[2] = {kRows, kColumns};
  const int64_t first = first_of(kRows, rank), end = first_of(kRows, rank + 1);
  const int64_t middle = (first + end) / 2;
  double* const upper = malloc((size_t)(middle - first) * kColumns * sizeof *upper);
  double* const lower = malloc((size_t)(end - middle) * kColumns * sizeof *lower);
  EXPECT(FTI_AddSubset(kUpper, 2, start, shape, 0) == FTI_NSCS); /* it is not protected yet */
  EXPECT(FTI_Protect(kUpper, upper, (middle - first) * kColumns, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Protect(kLower, lower, (end - middle) * kColumns, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_UpdateSubset(kUpper, 2, start, shape, 0) == FTI_NSCS); /* it is no part yet */
  EXPECT(FTI_AddSubset(kUpper, 1, start, shape, 0) == FTI_NSCS);
  EXPECT(FTI_AddSubset(kUpper, 2, start, shape, 3) == FTI_NSCS);
  EXPECT(FTI_AddSubset(kUpper, 2, start, shape, 0) == FTI_SCES);
  EXPECT(FTI_UpdateGlobalDataset(3, 2, whole) == FTI_NSCS);
  EXPECT(FTI_UpdateGlobalDataset(0, 2, whole) == FTI_SCES);
  EXPECT(FTI_Checkpoint(1, FTI_L4_H5_SINGLE) == FTI_NSCS); /* a part of no rows */
  start[0] = first, shape[0] = middle - first;
  fill_field(upper, start, shape);
  EXPECT(FTI_UpdateSubset(kUpper, 2, start, shape, 0) == FTI_SCES);
  start[0] = middle, shape[0] = end - middle;
  fill_field(lower, start, shape);
  EXPECT(FTI_AddSubset(kLower, 2, start, shape, 0) == FTI_SCES);
}

/* Two parts for each rank, with those of others between them. */
static struct particle* add_cloud(int half) {
  int64_t begin = (int64_t)kParticles * (rank + half * ranks) / (2 * ranks);
  int64_t count = (int64_t)kParticles * (rank + half * ranks + 1) / (2 * ranks) - begin;
  struct particle* const cloud = malloc((size_t)count * sizeof *cloud);
  fill_cloud(cloud, begin, count);
  EXPECT(FTI_Protect(kCloud + half, cloud, count, particle_type) == FTI_SCES);
  EXPECT(FTI_AddSubset(kCloud + half, 1, &begin, &count, 7) == FTI_SCES);
  return cloud;
}

/* A variable of this rank alone. */
static void describe(void) {
  FTIT_attribute attribute = {{2, {4, 3}}, "grid"};
  int* const grid = calloc(12, sizeof *grid);
  EXPECT(FTI_Protect(9, grid, 12, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_SetAttribute(9, attribute, FTI_ATTRIBUTE_NAME | FTI_ATTRIBUTE_DIM) == FTI_SCES);
  attribute.dim.ndims = 33;
  EXPECT(FTI_SetAttribute(9, attribute, FTI_ATTRIBUTE_DIM) == FTI_NSCS);
}

static void store(void) {
  define_all(kRows / 2);
  add_field();
  struct particle* const cloud = add_cloud(0);
  add_cloud(1);
  EXPECT(FTI_RecoverDatasetDimension(0) == FTI_NSCS); /* this is no restart */
  cloud->kind = -1;
  EXPECT(FTI_Checkpoint(1, FTI_L4_H5_SINGLE) == FTI_SCES);
  cloud->kind = kParticles * rank / (2 * ranks);
  EXPECT(FTI_InitICP(2, FTI_L4_H5_SINGLE, 1) == FTI_SCES);
  for (int id = kUpper; id <= kCloud + 1; ++id) EXPECT(FTI_AddVarICP(id) == FTI_SCES);
  cloud->kind = -1; /* too late for this checkpoint, and so is another size */
  EXPECT(FTI_Protect(kCloud, cloud, 1, particle_type) == FTI_SCES);
  EXPECT(FTI_FinalizeICP() == FTI_SCES);
  cloud->kind = kParticles * rank / (2 * ranks);
  describe();
  EXPECT(FTI_Checkpoint(3, FTI_L4) == FTI_DONE);
}

/* All rows of some columns, and some particles. */
static void recover(int is_selective) {
  const int64_t first = first_of(kColumns, rank), end = first_of(kColumns, rank + 1);
  int64_t start[2] = {0, first}, shape[2] = {kRows, end - first}, nothing[2] = {0, 0};
  int64_t begin = first_of(kParticles, rank), count = first_of(kParticles, rank + 1) - begin;
  double* const field = malloc((size_t)(kRows * (end - first)) * sizeof *field);
  struct particle* const cloud = malloc((size_t)count * sizeof *cloud);
  EXPECT(FTI_Status() == 3);
  define_all(kRows / 2);
  EXPECT(FTI_Protect(5, field, kRows * (end - first), FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Protect(6, cloud, count, particle_type) == FTI_SCES);
  EXPECT(FTI_UpdateGlobalDataset(0, 2, nothing) == FTI_SCES);
  EXPECT(FTI_RecoverDatasetDimension(0) == FTI_SCES && FTI_RecoverDatasetDimension(3) == FTI_NSCS);
  EXPECT(FTI_GetDatasetSpan(0, 2)[0] == kRows && FTI_GetDatasetSpan(0, 2)[1] == kColumns);
  start[0] = 1; /* a row more than there are */
  EXPECT(FTI_AddSubset(5, 2, start, shape, 0) == FTI_SCES && FTI_Recover() == FTI_NREC);
  start[0] = 0;
  EXPECT(FTI_UpdateSubset(5, 2, start, shape, 0) == FTI_SCES);
  EXPECT(FTI_AddSubset(6, 1, &begin, &count, 7) == FTI_SCES);
  if (is_selective) {
    EXPECT(FTI_RecoverVarInit() == FTI_SCES);
    EXPECT(FTI_RecoverVar(rank % 2 == 0 ? 5 : 6) == FTI_SCES);
    EXPECT(FTI_RecoverVar(rank % 2 == 0 ? 6 : 5) == FTI_SCES);
    EXPECT(FTI_RecoverVarFinalize() == FTI_SCES && FTI_Status() == 3);
  } else {
    EXPECT(FTI_Snapshot() == FTI_SCES && FTI_Status() == 0);
  }
  EXPECT(is_field(field, start, shape) && is_cloud(cloud, begin, count));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  EXPECT(argc == 3);
  const int begun = FTI_Init(argv[1], MPI_COMM_WORLD);
  const int is_missing = strcmp(argv[2], "miss") == 0;
  EXPECT(begun == (is_missing ? FTI_NREC : FTI_SCES));
  MPI_Comm_rank(FTI_COMM_WORLD, &rank);
  MPI_Comm_size(FTI_COMM_WORLD, &ranks);
  if (is_missing) {
    EXPECT(FTI_Status() == 0 && FTI_Recover() == FTI_NREC);
  } else if (strcmp(argv[2], "store") == 0) {
    store();
  } else {
    recover(strcmp(argv[2], "select") == 0);
  }
  EXPECT(FTI_Finalize() == FTI_SCES);
  MPI_Finalize();
  return 0;
}
