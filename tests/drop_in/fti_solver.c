/* A solver with FTI's calls, as its users write them: fti_solver CONFIGURATION LEVEL STEPS RESULT. LEVEL 0: whatever
 * FTI_Snapshot finds due. It moves its field to another address now and then, and frees it before the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fti.h"

enum { kCells = 20000, kEvery = 20 };

static void advance(double* field, int rank, int ranks, int step) {
  double edge = 0;
  MPI_Sendrecv(&field[kCells - 1], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &edge, 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, FTI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCells; ++i) {
    const double here = field[i];
    field[i] = 0.25 * edge + 0.75 * here + 1.0 / (step + i + 1);
    edge = here;
  }
}

static double* moved(double* field) {
  double* const copy = malloc(kCells * sizeof *copy);
  memcpy(copy, field, kCells * sizeof *copy);
  free(field);
  FTI_Protect(1, copy, kCells, FTI_DBLE);
  return copy;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int level = atoi(argv[2]);
  const int steps = atoi(argv[3]);
  int rank, ranks, step = 0;
  MPI_Init(&argc, &argv);
  const int begun = FTI_Init(argv[1], MPI_COMM_WORLD);
  if (begun == FTI_NREC) MPI_Abort(MPI_COMM_WORLD, 20);
  if (begun != FTI_SCES) { /* on all ranks; a launcher that is told to abort may drop what rank 0 has said */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 3;
  }
  MPI_Comm_rank(FTI_COMM_WORLD, &rank);
  MPI_Comm_size(FTI_COMM_WORLD, &ranks);
  double* field = calloc(kCells, sizeof *field);
  FTI_Protect(0, &step, 1, FTI_INTG);
  FTI_Protect(1, field, kCells, FTI_DBLE);
  if (FTI_Status() != 0 && FTI_Recover() != FTI_SCES) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, rank, ranks, step);
    ++step;
    const int done = level == 0           ? FTI_Snapshot()
                     : step % kEvery == 0 ? FTI_Checkpoint(step / kEvery % 2, level)
                                          : FTI_SCES;
    if (done != FTI_SCES && done != FTI_DONE) MPI_Abort(MPI_COMM_WORLD, 5);
    if (step % (3 * kEvery) == 0) field = moved(field);
  }
  char path[1000];
  snprintf(path, sizeof path, "%s.%d", argv[4], rank);
  FILE* const file = fopen(path, "wb");
  if (file == NULL || fwrite(field, sizeof *field, kCells, file) != kCells || fclose(file) != 0) return 6;
  free(field);
  if (FTI_Finalize() != FTI_SCES) return 7;
  MPI_Finalize();
  return 0;
}
