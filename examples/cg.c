/* Conjugate gradients whose checkpoints may lose accuracy. Run the program twice: the first run
 * stops half-way on purpose, the second continues from the last checkpoint.
 *
 * Only x, the solution so far, is stored, and its values may be changed within a bound. A hook
 * computes the residual r = b - Ax and the direction p from the restored x. The iteration starts
 * again from there, and its result is correct.
 *
 * With the argument "everything" the program shows a mistake: it stores x, r and p, each within the
 * bound. Then r is no longer b - Ax, and the iteration never checks that. It reports convergence,
 * and the solution is wrong. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diapause/diapause.h"

enum { kSide = 48, kCount = kSide * kSide, kStopAt = 40, kMost = 1000 };
static const double kTolerance = 1e-10, kBound = 1e-3;

typedef struct Solver {
  double x[kCount], r[kCount], p[kCount], b[kCount];
  double rr; /* r . r */
  uint64_t iteration;
} Solver;

/* Applies the five-point Laplacian, with zeros around the grid. */
static void apply(const double* v, double* out) {
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const int at = i * kSide + j;
      double sum = 4 * v[at];
      if (i > 0) sum -= v[at - kSide];
      if (i + 1 < kSide) sum -= v[at + kSide];
      if (j > 0) sum -= v[at - 1];
      if (j + 1 < kSide) sum -= v[at + 1];
      out[at] = sum;
    }
  }
}

static double dot(const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < kCount; ++i) sum += a[i] * b[i];
  return sum;
}

static void residual(const Solver* s, double* r) {
  apply(s->x, r);
  for (int i = 0; i < kCount; ++i) r[i] = s->b[i] - r[i];
}

/* Computes r and p from x. */
static int begin_at_x(void* context) {
  Solver* s = context;
  residual(s, s->r);
  memcpy(s->p, s->r, sizeof s->p);
  s->rr = dot(s->r, s->r);
  return 0;
}

static int recall_rr(void* context) {
  Solver* s = context;
  s->rr = dot(s->r, s->r);
  return 0;
}

static void iterate(Solver* s) {
  static double ap[kCount];
  apply(s->p, ap);
  const double alpha = s->rr / dot(s->p, ap), before = s->rr;
  for (int i = 0; i < kCount; ++i) {
    s->x[i] += alpha * s->p[i];
    s->r[i] -= alpha * ap[i];
  }
  s->rr = dot(s->r, s->r);
  for (int i = 0; i < kCount; ++i) s->p[i] = s->r[i] + s->rr / before * s->p[i];
  ++s->iteration;
}

static void tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "cg: %s\n", diapause_last_error());
}

static void protect_with_loss(diapause_t* diapause, const char* name, double* values) {
  const uint64_t shape[] = {kSide, kSide}, start[] = {0, 0};
  tell(diapause_protect_block(diapause, name, values, DIAPAUSE_FLOAT64, 2, shape, shape, start));
  tell(diapause_allow_loss(diapause, name, DIAPAUSE_LATTICE, kBound));
}

int main(int argc, char** argv) {
  static Solver s;
  static double r[kCount];
  const int everything = argc > 1 && strcmp(argv[1], "everything") == 0;
  for (int i = 0; i < kCount; ++i) s.b[i] = sin(0.37 * i) + (i % 7) * 0.1;
  const double size_of_b = sqrt(dot(s.b, s.b));

  diapause_t* diapause = NULL;
  tell(diapause_open(everything ? "cg-everything" : "cg", NULL, &diapause));
  tell(diapause_protect(diapause, "iteration", &s.iteration, 1, DIAPAUSE_UINT64));
  protect_with_loss(diapause, "x", s.x);
  if (everything) {
    protect_with_loss(diapause, "r", s.r);
    protect_with_loss(diapause, "p", s.p);
  }
  tell(diapause_on_restore(diapause, everything ? recall_rr : begin_at_x, &s));

  diapause_restart_info restart;
  const int status = diapause_restart(diapause, DIAPAUSE_NEWEST, &restart);
  const int is_first = status != DIAPAUSE_OK;
  if (!is_first) {
    printf("continuing after step %" PRIu64 ", every value within %g\n", restart.version,
           restart.greatest_error);
  } else {
    if (status != DIAPAUSE_ERR_NOT_FOUND) { /* there are checkpoints: do not begin anew */
      tell(status);
      return 2;
    }
    begin_at_x(&s);
  }

  while (sqrt(s.rr) > kTolerance * size_of_b && s.iteration < kMost) {
    iterate(&s);
    if (s.iteration % 20 == 0) tell(diapause_checkpoint(diapause, s.iteration, DIAPAUSE_L4, NULL));
    if (is_first && s.iteration == kStopAt) {
      tell(diapause_wait(diapause, s.iteration, DIAPAUSE_L4, 60));
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3); /* like a crash: nothing is closed */
    }
  }

  residual(&s, r);
  const double reported = sqrt(s.rr) / size_of_b, real = sqrt(dot(r, r)) / size_of_b;
  printf("converged after %" PRIu64 " iterations: residual %.1e, and b - Ax is %.1e\n", s.iteration,
         reported, real);
  tell(diapause_finish(diapause));
  const int is_right = real < 10 * kTolerance;
  if (reported > kTolerance) return 1;
  return everything ? is_right
                    : !is_right; /* with "everything" the solution is expected to be wrong */
}
