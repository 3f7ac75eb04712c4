/* Ranks of which each exchanges with one partner for a third of the time, then with another: most
 * of their connections are made long after they have learned each other's addresses. */
#include <mpi.h>

#include "../programs/step.h"

enum { COUNT = 1 << 12, THIRD = STEPS / 3 };

int main(int argc, char** argv) {
  static double mine[COUNT], its[COUNT];
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < COUNT; ++i) mine[i] = rank + i % 97;
  for (int i = 0; i < STEPS; ++i) {
    const int partner = rank ^ (1 + i / THIRD);
    double sum = 0;
    MPI_Sendrecv(mine, COUNT, MPI_DOUBLE, partner, i, its, COUNT, MPI_DOUBLE, partner, i,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; ++k) sum += mine[k] = its[k] / 2 + k % 5;
    if (rank == 0) step(i, (unsigned long)(sum * 1000));
  }
  MPI_Finalize();
  return 0;
}
