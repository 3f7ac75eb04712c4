"""Heat distribution in a square plate with NumPy and mpi4py: Jacobi iteration on an n x n grid, cut
into bands of rows. Killed at any moment and run again, it goes on from its newest checkpoint and
ends with the same bytes.

    mpirun -n 4 python3 -m mpi4py heat.py NAME N ITERATIONS RESULT
"""

import sys

import numpy
from mpi4py import MPI

import diapause


class Band:
    """Rows [first, first + rows) of the grid, with one row of the neighbours above and below."""

    def __init__(self, n, comm):
        self.comm, self.n = comm, n
        self.first = n * comm.rank // comm.size
        self.rows = n * (comm.rank + 1) // comm.size - self.first
        self.now = numpy.zeros((self.rows + 2, n))
        self.now[1:-1][(numpy.arange(self.rows) + self.first) % 7 == 0, 1:-1] = 100
        if self.first == 0:
            self.now[1] = 100
        self.inside = numpy.arange(self.first, self.first + self.rows)
        self.inside = (self.inside > 0) & (self.inside < n - 1)

    def exchange(self):
        above = self.comm.rank - 1 if self.comm.rank > 0 else MPI.PROC_NULL
        below = self.comm.rank + 1 if self.comm.rank < self.comm.size - 1 else MPI.PROC_NULL
        self.comm.Sendrecv(self.now[1], above, recvbuf=self.now[-1], source=below)
        self.comm.Sendrecv(self.now[-2], below, recvbuf=self.now[0], source=above)

    def relax(self):
        """In place: the array that is protected stays where it is."""
        now = self.now
        new = 0.25 * ((now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:]))
        now[1:-1, 1:-1][self.inside] = new[self.inside]


def main():
    name, n, iterations, result = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    comm = MPI.COMM_WORLD
    band = Band(n, comm)
    with diapause.open(name, comm) as run:
        run.protect_block("field", band.now[1:-1], (n, n), (band.first, 0))
        for _ in run.steps(iterations):
            band.exchange()
            band.relax()
        stopped = run.should_stop()
    if not stopped:
        whole = comm.gather(band.now[1:-1])
        if comm.rank == 0:
            numpy.concatenate(whole).tofile(result)


if __name__ == "__main__":
    main()
