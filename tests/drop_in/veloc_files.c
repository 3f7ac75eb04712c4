/* A solver that writes its own files where VELOC tells it to: veloc_files CONFIGURATION NAME STEPS RESULT. */
#include <stdio.h>
#include <stdlib.h>

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

static int write_file(const char* path, const int* step, const double* field) {
  FILE* const file = fopen(path, "wb");
  if (file == NULL) return 0;
  const int is_written =
      fwrite(step, sizeof *step, 1, file) == 1 && fwrite(field, sizeof *field, kCells, file) == kCells;
  return fclose(file) == 0 && is_written;
}

static int read_file(const char* path, int* step, double* field) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return 0;
  const int is_read = fread(step, sizeof *step, 1, file) == 1 && fread(field, sizeof *field, kCells, file) == kCells;
  return fclose(file) == 0 && is_read;
}

static int checkpoint(const char* name, int step, const double* field) {
  char path[VELOC_MAX_NAME];
  if (VELOC_Checkpoint_begin(name, step) != VELOC_SUCCESS) return 0;
  if (VELOC_Route_file("checkpoint.dat", path) != VELOC_SUCCESS) return 0;
  return VELOC_Checkpoint_end(write_file(path, &step, field)) == VELOC_SUCCESS;
}

static int restart(const char* name, int version, int* step, double* field) {
  char path[VELOC_MAX_NAME];
  if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return 0;
  if (VELOC_Route_file("checkpoint.dat", path) != VELOC_SUCCESS) return 0;
  const int is_read = read_file(path, step, field);
  return VELOC_Restart_end(is_read) == VELOC_SUCCESS && is_read;
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
  const int version = VELOC_Restart_test(name, 0);
  if (version > 0 && !restart(name, version, &step, field)) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, rank, ranks, step);
    ++step;
    if (step % kEvery != 0) continue;
    if (!checkpoint(name, step, field)) MPI_Abort(MPI_COMM_WORLD, 5);
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
