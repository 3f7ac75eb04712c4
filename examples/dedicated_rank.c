/* A program that works with and without dedicated ranks: it computes on the communicator that
 * Diapause gives it. Run it twice with async.mode = "rank": in the first run one rank aborts the
 * job half-way, the second run continues and finishes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "diapause/diapause_mpi.h"

enum { kSteps = 100, kTerms = 1000, kStopAt = 57 };

static void tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "dedicated_rank: %s\n", diapause_last_error());
}

/* Returns whether the result is pi. Collective over `comm`. */
static int compute(diapause_t* diapause, MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  double sum = 0;
  uint64_t first = 0;
  tell(diapause_protect(diapause, "sum", &sum, 1, DIAPAUSE_FLOAT64));
  diapause_restart_info restart;
  const int status = diapause_restart(diapause, DIAPAUSE_NEWEST, &restart);
  if (status == DIAPAUSE_OK) first = restart.version;
  if (status != DIAPAUSE_OK &&
      status != DIAPAUSE_ERR_NOT_FOUND) { /* there are checkpoints: do not begin anew */
    tell(status);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (first > 0 && rank == 0)
    printf("continuing after step %" PRIu64 " with %d ranks\n", first, ranks);

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    for (uint64_t k = (step - 1) * kTerms; k < step * kTerms; ++k) {
      const double n = (double)(k * (uint64_t)ranks + (uint64_t)rank);
      sum += 1 / ((4 * n + 1) * (4 * n + 3));
    }
    /* The call returns when the sum is captured; the dedicated rank does the rest. */
    if (step % 10 == 0)
      tell(diapause_checkpoint(diapause, step, step % 40 == 0 ? DIAPAUSE_L4 : DIAPAUSE_L1, NULL));
    if (first == 0 && step == kStopAt) {
      tell(diapause_wait(diapause, 40, DIAPAUSE_L4, 60));
      MPI_Barrier(comm);
      if (rank == ranks - 1) MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, comm);
  if (rank == 0) printf("pi is about %.6f\n", 8 * total);
  return fabs(8 * total - 3.141592653589793) < 1e-4;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  diapause_t* diapause = NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  tell(diapause_mpi_open(MPI_COMM_WORLD, "dedicated_rank", NULL, &diapause));
  tell(diapause_comm(diapause, &comm));
  /* A dedicated rank comes here at once: its diapause_finish serves the other ranks until they have
   * finished. */
  const int is_right = comm == MPI_COMM_NULL || compute(diapause, comm);
  tell(diapause_finish(diapause));
  MPI_Finalize();
  return is_right ? 0 : 1;
}
