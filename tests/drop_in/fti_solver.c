/* A solver with FTI's calls, as its users write them: fti_solver CONFIGURATION LEVEL STEPS RESULT.
 * LEVEL 0: whatever FTI_Snapshot finds due. It moves its field to another address now and then, and
 * frees it before the end. */
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "fti.h"

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
  int step = 0;
  MPI_Init(&argc, &argv);
  const int begun = FTI_Init(argv[1], MPI_COMM_WORLD);
  if (begun == FTI_NREC) MPI_Abort(MPI_COMM_WORLD, 20);
  if (begun !=
      FTI_SCES) { /* on all ranks; a launcher that is told to abort may drop what rank 0 has said */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 3;
  }
  double* field = calloc(kCells, sizeof *field);
  FTI_Protect(0, &step, 1, FTI_INTG);
  FTI_Protect(1, field, kCells, FTI_DBLE);
  if (FTI_Status() != 0 && FTI_Recover() != FTI_SCES) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, step, FTI_COMM_WORLD);
    ++step;
    const int done = level == 0           ? FTI_Snapshot()
                     : step % kEvery == 0 ? FTI_Checkpoint(step / kEvery % 2, level)
                                          : FTI_SCES;
    if (done != FTI_SCES && done != FTI_DONE) MPI_Abort(MPI_COMM_WORLD, 5);
    if (step % (3 * kEvery) == 0) field = moved(field);
  }
  if (!write_result(argv[4], field, FTI_COMM_WORLD)) return 6;
  free(field);
  if (FTI_Finalize() != FTI_SCES) return 7;
  MPI_Finalize();
  return 0;
}
