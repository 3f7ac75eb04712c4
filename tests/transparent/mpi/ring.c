/* Ranks that pass on more than fits into one message at once, and agree on a sum at each step. */
#include <mpi.h>

#include "../programs/step.h"

enum { COUNT = 1 << 16 };

int main(int argc, char** argv) {
  static double mine[COUNT], its[COUNT];
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < COUNT; ++i) mine[i] = rank + i % 97;
  for (int i = 0; i < STEPS; ++i) {
    double part = 0, sum = 0;
    MPI_Sendrecv(mine, COUNT, MPI_DOUBLE, (rank + 1) % size, i, its, COUNT, MPI_DOUBLE,
                 (rank + size - 1) % size, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; ++k) part += mine[k] = its[k] / 2 + k % 5;
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) step(i, (unsigned long)(sum * 1000));
  }
  MPI_Finalize();
  return 0;
}
