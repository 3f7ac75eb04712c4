/* A solver with VELOC's calls, as its users write them: veloc_solver CONFIGURATION NAME STEPS
 * RESULT [hold]. It moves its field to another address now and then, and frees it before the end.
 * With "hold" it makes no further call when it has written the result, and waits to be killed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "field.h"
#include "veloc.h"

static double* moved(double* field) {
  double* const copy = malloc(kCells * sizeof *copy);
  memcpy(copy, field, kCells * sizeof *copy);
  free(field);
  VELOC_Mem_protect(1, copy, kCells, sizeof *copy);
  return copy;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const char* const name = argv[2];
  const int steps = atoi(argv[3]);
  int step = 0;
  MPI_Init(&argc, &argv);
  if (VELOC_Init(MPI_COMM_WORLD, argv[1]) != VELOC_SUCCESS) {
    MPI_Barrier(MPI_COMM_WORLD); /* on all ranks; a launcher that is told to abort may drop what
                                    rank 0 has said */
    MPI_Finalize();
    return 3;
  }
  double* field = calloc(kCells, sizeof *field);
  VELOC_Mem_protect(0, &step, 1, sizeof step);
  VELOC_Mem_protect(1, field, kCells, sizeof *field);
  const int version = VELOC_Restart_test(name, 0);
  if (version > 0 && VELOC_Restart(name, version) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, step, MPI_COMM_WORLD);
    ++step;
    if (step % kEvery != 0) continue;
    if (VELOC_Checkpoint(name, step) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 5);
    if (step % (3 * kEvery) == 0) field = moved(field);
  }
  if (!write_result(argv[4], field, MPI_COMM_WORLD)) return 6;
  while (argc > 5) pause();
  free(field);
  if (VELOC_Finalize(1) != VELOC_SUCCESS) return 7;
  MPI_Finalize();
  return 0;
}
