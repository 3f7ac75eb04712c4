/* The solvers of these tests compute this field, which travels around a ring of ranks, and write it
 * to files. */
#ifndef DIAPAUSE_TESTS_DROP_IN_FIELD_H
#define DIAPAUSE_TESTS_DROP_IN_FIELD_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCells = 20000, kEvery = 20 };

static inline void advance(double* field, int step, MPI_Comm comm) {
  double edge = 0;
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Sendrecv(&field[kCells - 1], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &edge, 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCells; ++i) {
    const double here = field[i];
    field[i] = 0.25 * edge + 0.75 * here + 1.0 / (step + i + 1);
    edge = here;
  }
}

/* Return whether the file was written, or read, in full. */
static inline int write_checkpoint(const char* path, const int* step, const double* field) {
  FILE* const file = fopen(path, "wb");
  if (file == NULL) return 0;
  const int is_written = fwrite(step, sizeof *step, 1, file) == 1 &&
                         fwrite(field, sizeof *field, kCells, file) == kCells;
  return fclose(file) == 0 && is_written;
}

static inline int read_checkpoint(const char* path, int* step, double* field) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return 0;
  const int is_read = fread(step, sizeof *step, 1, file) == 1 &&
                      fread(field, sizeof *field, kCells, file) == kCells;
  return fclose(file) == 0 && is_read;
}

/* Writes the field alone, as <result>.<rank>, which is there when it is whole. */
static inline int write_result(const char* result, const double* field, MPI_Comm comm) {
  char path[1000], next[1010];
  int rank;
  MPI_Comm_rank(comm, &rank);
  snprintf(path, sizeof path, "%s.%d", result, rank);
  snprintf(next, sizeof next, "%s.next", path);
  FILE* const file = fopen(next, "wb");
  if (file == NULL) return 0;
  const int is_written = fwrite(field, sizeof *field, kCells, file) == kCells;
  return fclose(file) == 0 && is_written && rename(next, path) == 0;
}

#endif
