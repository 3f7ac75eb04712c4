/* A solver with VELOC's calls, as its users write them: veloc_solver CONFIGURATION NAME STEPS RESULT. It moves its
 * field to another address now and then, and frees it before the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "veloc.h"

enum { kCells = 20000, kEvery = 20 };

static void advance(double* field, int rank, int ranks, int step) {
  double edge = 0;
  MPI_Sendrecv(&field[kCells - 1], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &edge, 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
  VELOC_Mem_protect(1, copy, kCells, sizeof *copy);
  return copy;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const char* const name = argv[2];
  const int steps = atoi(argv[3]);
  int rank, ranks, step = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (VELOC_Init(MPI_COMM_WORLD, argv[1]) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  double* field = calloc(kCells, sizeof *field);
  VELOC_Mem_protect(0, &step, 1, sizeof step);
  VELOC_Mem_protect(1, field, kCells, sizeof *field);
  const int version = VELOC_Restart_test(name, 0);
  if (version > 0 && VELOC_Restart(name, version) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, rank, ranks, step);
    ++step;
    if (step % kEvery != 0) continue;
    if (VELOC_Checkpoint(name, step) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 5);
    if (step % (3 * kEvery) == 0) field = moved(field);
  }
  char path[1000];
  snprintf(path, sizeof path, "%s.%d", argv[4], rank);
  FILE* const file = fopen(path, "wb");
  if (file == NULL || fwrite(field, sizeof *field, kCells, file) != kCells || fclose(file) != 0) return 6;
  free(field);
  if (VELOC_Finalize(1) != VELOC_SUCCESS) return 7;
  MPI_Finalize();
  return 0;
}
