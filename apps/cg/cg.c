/* Heat with a source in a box, in implicit steps: each step solves a system of a 27-point stencil
 * by conjugate gradients. Ranks hold slabs of the box and exchange the planes between them. A
 * checkpoint may be taken in the middle of a solution: it holds the vectors of the method.
 *
 * cg NAME SIZE ITERATIONS RESULT   The box is SIZE x SIZE x (SIZE for each rank). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diapause/diapause_mpi.h"

enum { kMostIterations = 50 }; /* for one solution */
static const double kPrecision = 1e-8;

typedef struct {
  MPI_Comm comm;
  int rank, ranks;
  int size;     /* cells of the box in x and y, and of the slab in z */
  size_t plane; /* cells of a plane */
  size_t cells; /* cells of the slab */
} Slab;

/* The state of the method. */
typedef struct {
  int64_t iteration; /* counted over all solutions */
  int64_t step;
  int64_t of_step; /* iterations of this solution */
  double rho, rho_at_start;
} State;

/* The vectors are of the slab; p has a plane of its neighbours' below and above. */
typedef struct {
  double *x, *r, *p, *q;
} Vectors;

/* The sum over ranks in their order, which is the same in every run to the last bit. */
static double dot(const Slab* slab, const double* a, const double* b) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < slab->cells; ++i) sum += a[i] * b[i];
  double* const sums = malloc((size_t)slab->ranks * sizeof *sums);
  MPI_Allgather(&sum, 1, MPI_DOUBLE, sums, 1, MPI_DOUBLE, slab->comm);
  for (int rank = 0; rank < slab->ranks; ++rank) total += sums[rank];
  free(sums);
  return total;
}

/* Fills the planes below and above `inner`; those at the ends of the box stay 0. */
static void exchange(const Slab* slab, double* inner) {
  const int count = (int)slab->plane;
  const int below = slab->rank > 0 ? slab->rank - 1 : MPI_PROC_NULL;
  const int above = slab->rank + 1 < slab->ranks ? slab->rank + 1 : MPI_PROC_NULL;
  double* const last = inner + slab->cells - slab->plane;
  MPI_Sendrecv(inner, count, MPI_DOUBLE, below, 0, last + slab->plane, count, MPI_DOUBLE, above, 0,
               slab->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(last, count, MPI_DOUBLE, above, 1, inner - slab->plane, count, MPI_DOUBLE, below, 1,
               slab->comm, MPI_STATUS_IGNORE);
}

/* Returns the sum of the cells around (x, y) in three planes, with the cell itself. */
static double sum_around(const Slab* slab, const double* plane, int x, int y) {
  double sum = 0;
  for (int z = -1; z <= 1; ++z) {
    for (int j = y > 0 ? y - 1 : 0; j <= y + 1 && j < slab->size; ++j) {
      for (int i = x > 0 ? x - 1 : 0; i <= x + 1 && i < slab->size; ++i) {
        sum += plane[z * (ptrdiff_t)slab->plane + (ptrdiff_t)j * slab->size + i];
      }
    }
  }
  return sum;
}

/* q = A p: each cell loses to its 26 neighbours, and keeps one part. */
static void multiply(const Slab* slab, double* q, double* p) {
  exchange(slab, p);
  for (int z = 0; z < slab->size; ++z) {
    for (int y = 0; y < slab->size; ++y) {
      for (int x = 0; x < slab->size; ++x) {
        const size_t cell =
            ((size_t)z * (size_t)slab->size + (size_t)y) * (size_t)slab->size + (size_t)x;
        q[cell] = 28 * p[cell] - sum_around(slab, p + (size_t)z * slab->plane, x, y);
      }
    }
  }
}

/* The right-hand side is what was there and what the source gives; the solution before is where the
 * next one begins. */
static void begin_step(const Slab* slab, State* state, Vectors* v) {
  memcpy(v->p, v->x, slab->cells * sizeof *v->p);
  multiply(slab, v->q, v->p);
  for (size_t i = 0; i < slab->cells; ++i) {
    const double source = 1.0 / (double)(1 + i % 7 + (size_t)slab->rank);
    v->p[i] = v->r[i] = v->x[i] + source - v->q[i];
  }
  state->rho = state->rho_at_start = dot(slab, v->r, v->r);
  state->of_step = 0;
  ++state->step;
}

static void iterate(const Slab* slab, State* state, Vectors* v) {
  multiply(slab, v->q, v->p);
  const double alpha = state->rho / dot(slab, v->p, v->q);
  for (size_t i = 0; i < slab->cells; ++i) {
    v->x[i] += alpha * v->p[i];
    v->r[i] -= alpha * v->q[i];
  }
  const double rho = dot(slab, v->r, v->r);
  for (size_t i = 0; i < slab->cells; ++i) v->p[i] = v->r[i] + rho / state->rho * v->p[i];
  state->rho = rho;
  ++state->of_step;
  ++state->iteration;
}

static int is_solved(const State* state) {
  return state->rho <= kPrecision * kPrecision * state->rho_at_start ||
         state->of_step == kMostIterations;
}

static double* zeros(size_t count) {
  double* const values = calloc(count, sizeof *values);
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return values;
}

static void check(int status) {
  if (status == DIAPAUSE_OK) return;
  fprintf(stderr, "cg: %s\n", diapause_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_result(const Slab* slab, const char* path, const double* x) {
  MPI_File file;
  const MPI_Offset place = (MPI_Offset)((size_t)slab->rank * slab->cells * sizeof *x);
  int is_written = MPI_File_open(slab->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                                 &file) == MPI_SUCCESS;
  if (is_written) {
    is_written = MPI_File_write_at_all(file, place, x, (int)slab->cells, MPI_DOUBLE,
                                       MPI_STATUS_IGNORE) == MPI_SUCCESS;
    is_written = MPI_File_close(&file) == MPI_SUCCESS && is_written;
  }
  if (is_written) return;
  fprintf(stderr, "cg: %s cannot be written\n", path);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: cg NAME SIZE ITERATIONS RESULT\n");
    return 2;
  }
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  diapause_t* diapause = NULL;
  check(diapause_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &diapause));
  Slab slab = {.size = atoi(argv[2])};
  check(diapause_comm(diapause, &slab.comm)); /* without a dedicated rank */
  if (slab.comm == MPI_COMM_NULL) {
    check(diapause_finish(diapause));
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(slab.comm, &slab.rank);
  MPI_Comm_size(slab.comm, &slab.ranks);
  slab.plane = (size_t)slab.size * (size_t)slab.size;
  slab.cells = slab.plane * (size_t)slab.size;
  double* const with_planes = zeros(slab.cells + 2 * slab.plane);
  Vectors v = {zeros(slab.cells), zeros(slab.cells), with_planes + slab.plane, zeros(slab.cells)};
  State state = {0};

  check(diapause_protect_bytes(diapause, "state", &state, 1, sizeof state));
  check(diapause_protect(diapause, "x", v.x, slab.cells, DIAPAUSE_FLOAT64));
  check(diapause_protect(diapause, "r", v.r, slab.cells, DIAPAUSE_FLOAT64));
  check(diapause_protect(diapause, "p", v.p, slab.cells,
                         DIAPAUSE_FLOAT64)); /* q is computed from it */
  const int restarted = diapause_restart(diapause, DIAPAUSE_NEWEST, NULL);
  if (restarted != DIAPAUSE_ERR_NOT_FOUND) check(restarted);
  if (restarted == DIAPAUSE_ERR_NOT_FOUND) begin_step(&slab, &state, &v);

  const int64_t iterations = atoll(argv[3]);
  int must_stop = 0;
  while (state.iteration < iterations && !must_stop) {
    iterate(&slab, &state, &v);
    if (is_solved(&state)) begin_step(&slab, &state, &v);
    check(diapause_snapshot(diapause, (uint64_t)state.iteration, NULL));
    must_stop = diapause_should_stop(diapause, NULL) != DIAPAUSE_GO_ON;
  }

  if (!must_stop) write_result(&slab, argv[4], v.x);
  check(must_stop ? diapause_close(diapause) : diapause_finish(diapause));
  free(with_planes);
  free(v.x);
  free(v.r);
  free(v.q);
  MPI_Finalize();
  return 0;
}
