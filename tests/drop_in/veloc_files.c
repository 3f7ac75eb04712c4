/* A solver that writes its own files where VELOC tells it to: veloc_files CONFIGURATION NAME STEPS
 * RESULT [hold]. With "hold" it makes no further call when it has written the result. */
#include <stdlib.h>
#include <unistd.h>

#include "field.h"
#include "veloc.h"

static int checkpoint(const char* name, int step, const double* field) {
  char path[VELOC_MAX_NAME];
  if (VELOC_Checkpoint_begin(name, step) != VELOC_SUCCESS) return 0;
  if (VELOC_Route_file("checkpoint.dat", path) != VELOC_SUCCESS) return 0;
  return VELOC_Checkpoint_end(write_checkpoint(path, &step, field)) == VELOC_SUCCESS;
}

static int restart(const char* name, int version, int* step, double* field) {
  char path[VELOC_MAX_NAME];
  if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return 0;
  if (VELOC_Route_file("checkpoint.dat", path) != VELOC_SUCCESS) return 0;
  const int is_read = read_checkpoint(path, step, field);
  return VELOC_Restart_end(is_read) == VELOC_SUCCESS && is_read;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const char* const name = argv[2];
  const int steps = atoi(argv[3]);
  int step = 0;
  MPI_Init(&argc, &argv);
  if (VELOC_Init(MPI_COMM_WORLD, argv[1]) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  double* field = calloc(kCells, sizeof *field);
  const int version = VELOC_Restart_test(name, 0);
  if (version > 0 && !restart(name, version, &step, field)) MPI_Abort(MPI_COMM_WORLD, 4);
  while (step < steps) {
    advance(field, step, MPI_COMM_WORLD);
    ++step;
    if (step % kEvery != 0) continue;
    if (!checkpoint(name, step, field)) MPI_Abort(MPI_COMM_WORLD, 5);
  }
  if (!write_result(argv[4], field, MPI_COMM_WORLD)) return 6;
  while (argc > 5) pause();
  free(field);
  if (VELOC_Finalize(1) != VELOC_SUCCESS) return 7;
  MPI_Finalize();
  return 0;
}
