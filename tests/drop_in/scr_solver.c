/* A solver that writes its checkpoints where SCR tells it to: scr_solver CONFIGURATION NAME STEPS
 * RESULT. */
#include <stdlib.h>

#include "field.h"
#include "scr.h"

static void file_name(char* name, const char* dataset) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, SCR_MAX_FILENAME, "%.900s/field/rank_%d", dataset, rank);
}

static int checkpoint(int step, const double* field) {
  char dataset[SCR_MAX_FILENAME - 100], name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
  snprintf(dataset, sizeof dataset, "step.%d", step);
  if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return 0;
  file_name(name, dataset);
  if (SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
  return SCR_Complete_output(write_checkpoint(path, &step, field)) == SCR_SUCCESS;
}

static void restart(int* step, double* field) {
  char dataset[SCR_MAX_FILENAME], name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
  int is_there = 0, is_done = 0;
  while (!is_done && SCR_Have_restart(&is_there, dataset) == SCR_SUCCESS && is_there) {
    if (SCR_Start_restart(dataset) != SCR_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
    file_name(name, dataset);
    const int is_read =
        SCR_Route_file(name, path) == SCR_SUCCESS && read_checkpoint(path, step, field);
    is_done = SCR_Complete_restart(is_read) == SCR_SUCCESS;
  }
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int steps = atoi(argv[3]);
  int step = 0, is_due;
  MPI_Init(&argc, &argv);
  SCR_Configf("SCR_CONF_FILE=%s", argv[1]);
  SCR_Configf("SCR_JOB_NAME=%s", argv[2]);
  if (SCR_Init() != SCR_SUCCESS) {
    MPI_Barrier(MPI_COMM_WORLD); /* on all ranks; a launcher that is told to abort may drop what
                                    rank 0 has said */
    MPI_Finalize();
    return 3;
  }
  double* const field = calloc(kCells, sizeof *field);
  restart(&step, field);
  while (step < steps) {
    advance(field, step, MPI_COMM_WORLD);
    ++step;
    if (SCR_Need_checkpoint(&is_due) != SCR_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 5);
    if (is_due && !checkpoint(step, field)) MPI_Abort(MPI_COMM_WORLD, 6);
  }
  if (!write_result(argv[4], field, MPI_COMM_WORLD)) return 7;
  free(field);
  if (SCR_Finalize() != SCR_SUCCESS) return 8;
  MPI_Finalize();
  return 0;
}
