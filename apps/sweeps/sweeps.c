/* Symmetric over-relaxation in a box with five values in each cell, in the manner of the benchmark
 * LU of the NAS Parallel Benchmarks: ranks hold columns of the box, and each sweep goes through the
 * planes as a wave, for which a rank gets the edges of its neighbours plane by plane in many small
 * messages. It is not that benchmark: the equations are simpler, and its classes are only sizes.
 * The program knows nothing of checkpoints.
 *
 * sweeps SIZE ITERATIONS   The box is SIZE x SIZE x SIZE. Prints what is left of the error, which
 *                          is the same for any number of ranks. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kValues = 5, kX = 0, kY = 1 };
static const double kRelaxation = 1.2, kCoupling = 0.02;

typedef struct {
  MPI_Comm grid;
  int rank;
  int first[2], cells[2]; /* of x and y */
  int size;               /* of z, and of the whole box in each direction */
  int before[2], behind[2];
  double* edges[2]; /* those of one plane, on their way */
  double* u;        /* the cells, with one more on each side */
} Box;

static void divide(Box* box, int direction, int parts, int part) {
  const int size = box->size;
  box->first[direction] = (int)((long)size * part / parts);
  box->cells[direction] = (int)((long)size * (part + 1) / parts) - box->first[direction];
}

static double* at(const Box* box, int x, int y, int z) {
  const size_t row = (size_t)(box->cells[kX] + 2), plane = row * (size_t)(box->cells[kY] + 2);
  return box->u + kValues * (plane * (size_t)(z + 1) + row * (size_t)(y + 1) + (size_t)(x + 1));
}

/* What stands on the right, of a cell of the whole box. */
static double source(const Box* box, int x, int y, int z, int value) {
  const double scale = 3.14159265358979 / box->size;
  return sin(scale * (box->first[kX] + x + 1)) * sin(scale * (box->first[kY] + y + 1)) *
         sin(scale * (z + 1)) * (value + 1);
}

/* What a cell misses to fulfil its equation. */
static void miss(const Box* box, int x, int y, int z, double* found) {
  const double *own = at(box, x, y, z), *west = at(box, x - 1, y, z), *east = at(box, x + 1, y, z),
               *south = at(box, x, y - 1, z), *north = at(box, x, y + 1, z),
               *below = at(box, x, y, z - 1), *above = at(box, x, y, z + 1);
  for (int i = 0; i < kValues; ++i) {
    double sum = source(box, x, y, z, i) - 6 * own[i];
    sum += west[i] + east[i] + south[i] + north[i] + below[i] + above[i];
    for (int k = 0; k < kValues; ++k) sum += kCoupling * (own[k] - own[i]);
    found[i] = sum;
  }
}

static void relax(Box* box, int x, int y, int z) {
  double missing[kValues], *own = at(box, x, y, z);
  miss(box, x, y, z, missing);
  for (int i = 0; i < kValues; ++i) own[i] += kRelaxation / 6 * missing[i];
}

/* The edge of a plane towards a direction: `at_end` is that with the highest index. `is_ghost`: the
 * cells beyond it, which are the neighbour's. */
static double* edge_cell(const Box* box, int direction, int at_end, int is_ghost, int along,
                         int z) {
  const int last = box->cells[direction] - 1;
  const int across = at_end ? last + is_ghost : -is_ghost;
  return direction == kX ? at(box, across, along, z) : at(box, along, across, z);
}

static void pass_edge(Box* box, int direction, int upwards, int is_receive, int z) {
  const int partner = is_receive == upwards ? box->before[direction] : box->behind[direction];
  if (partner == MPI_PROC_NULL) return;
  const int length = box->cells[1 - direction], bytes_end = is_receive ? !upwards : upwards;
  double* const edge = box->edges[direction];
  if (is_receive)
    MPI_Recv(edge, kValues * length, MPI_DOUBLE, partner, direction, box->grid, MPI_STATUS_IGNORE);
  for (int i = 0; i < length; ++i) {
    double* const cell = edge_cell(box, direction, bytes_end, is_receive, i, z);
    memcpy(is_receive ? cell : edge + kValues * i, is_receive ? edge + kValues * i : cell,
           kValues * sizeof *cell);
  }
  if (!is_receive) MPI_Send(edge, kValues * length, MPI_DOUBLE, partner, direction, box->grid);
}

/* Goes through the box once, in rising or falling order of all three indices. */
static void sweep(Box* box, int upwards) {
  for (int k = 0; k < box->size; ++k) {
    const int z = upwards ? k : box->size - 1 - k;
    pass_edge(box, kX, upwards, 1, z);
    pass_edge(box, kY, upwards, 1, z);
    for (int j = 0; j < box->cells[kY]; ++j) {
      for (int i = 0; i < box->cells[kX]; ++i)
        relax(box, upwards ? i : box->cells[kX] - 1 - i, upwards ? j : box->cells[kY] - 1 - j, z);
    }
    pass_edge(box, kX, upwards, 0, z);
    pass_edge(box, kY, upwards, 0, z);
  }
}

/* Between two sweeps the neighbours on the other side have changed, too. */
static void exchange(Box* box, int upwards) {
  for (int z = 0; z < box->size; ++z) {
    for (int direction = kX; direction <= kY; ++direction) {
      pass_edge(box, direction, upwards, 0, z);
      pass_edge(box, direction, upwards, 1, z);
    }
  }
}

static double error_of(const Box* box) {
  double own = 0, all = 0, missing[kValues];
  for (int z = 0; z < box->size; ++z) {
    for (int y = 0; y < box->cells[kY]; ++y) {
      for (int x = 0; x < box->cells[kX]; ++x) {
        miss(box, x, y, z, missing);
        for (int i = 0; i < kValues; ++i) own += missing[i] * missing[i];
      }
    }
  }
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, box->grid);
  return sqrt(all);
}

static void open_box(Box* box, int size) {
  int ranks, parts[2] = {0, 0}, place[2], never[2] = {0, 0};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, parts);
  MPI_Cart_create(MPI_COMM_WORLD, 2, parts, never, 0, &box->grid);
  MPI_Comm_rank(box->grid, &box->rank);
  MPI_Cart_coords(box->grid, box->rank, 2, place);
  box->size = size;
  for (int direction = kX; direction <= kY; ++direction) {
    divide(box, direction, parts[direction], place[direction]);
    MPI_Cart_shift(box->grid, direction, 1, &box->before[direction], &box->behind[direction]);
    box->edges[direction] = malloc(sizeof(double) * kValues * (size_t)size);
  }
  const size_t cells =
      (size_t)(box->cells[kX] + 2) * (size_t)(box->cells[kY] + 2) * (size_t)(size + 2);
  box->u = calloc(cells * kValues, sizeof *box->u);
  if (box->u == NULL || box->edges[kX] == NULL || box->edges[kY] == NULL) MPI_Abort(box->grid, 1);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  if (count != 3) {
    fprintf(stderr, "usage: sweeps SIZE ITERATIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Box box = {0};
  open_box(&box, atoi(words[1]));
  const long iterations = atol(words[2]);
  for (long i = 0; i < iterations; ++i) {
    for (int upwards = 1; upwards >= 0; --upwards) {
      sweep(&box, upwards);
      exchange(&box, !upwards);
    }
  }
  const double error = error_of(&box);
  if (box.rank == 0) printf("error %.10e after %ld iterations\n", error, iterations);
  free(box.u);
  free(box.edges[kX]);
  free(box.edges[kY]);
  MPI_Finalize();
  return 0;
}
