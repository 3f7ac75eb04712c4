/* The smallest program with MPI: every rank adds up its own terms of a series for pi. Run it twice
 * under mpirun: in the first run one rank aborts the job half-way, the second run continues and
 * finishes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "diapause/diapause_mpi.h"

static void tell(int rank, int status) {
  if (status != DIAPAUSE_OK && rank == 0)
    fprintf(stderr, "minimal_mpi: %s\n", diapause_last_error());
}

int main(int argc, char** argv) {
  enum { kSteps = 100, kTerms = 1000, kStopAt = 57 };
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double sum = 0;
  uint64_t first = 0;

  diapause_t* diapause = NULL;
  tell(rank, diapause_mpi_open(MPI_COMM_WORLD, "minimal_mpi", NULL, &diapause));
  tell(rank, diapause_protect(diapause, "sum", &sum, 1, DIAPAUSE_FLOAT64));

  diapause_restart_info restart;
  const int status =
      diapause_restart(diapause, DIAPAUSE_NEWEST, &restart); /* the same on all ranks */
  if (status == DIAPAUSE_OK) first = restart.version;
  if (status == DIAPAUSE_OK && rank == 0) printf("continuing after step %" PRIu64 "\n", first);
  if (status != DIAPAUSE_OK &&
      status != DIAPAUSE_ERR_NOT_FOUND) { /* there are checkpoints: do not begin anew */
    tell(rank, status);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    for (uint64_t k = (step - 1) * kTerms; k < step * kTerms; ++k) {
      const double n = (double)(k * (uint64_t)ranks + (uint64_t)rank);
      sum += 1 / ((4 * n + 1) * (4 * n + 3));
    }
    /* Every tenth step takes a checkpoint. Every fourth of them goes to the global directory, the
     * others to the node.
     */
    if (step % 10 == 0) {
      tell(rank,
           diapause_checkpoint(diapause, step, step % 40 == 0 ? DIAPAUSE_L4 : DIAPAUSE_L1, NULL));
    }
    if (first == 0 && step == kStopAt && rank == ranks - 1) MPI_Abort(MPI_COMM_WORLD, 3);
  }

  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("pi is about %.6f\n", 8 * total);
  tell(rank, diapause_finish(diapause)); /* done: the next run begins anew */
  MPI_Finalize();
  return fabs(8 * total - 3.141592653589793) < 1e-4 ? 0 : 1;
}
