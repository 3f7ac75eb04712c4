/* The memory benchmark STREAM over MPI ranks: Copy, Scale, Add and Triad on three arrays of each
 * rank, again and again. The arrays are protected, so a checkpoint holds three times `--elements`
 * numbers of every rank. Everything that has to do with checkpoints stands between
 * STREAM_WITHOUT_DIAPAUSE guards; compiled with that macro, it is the same program without
 * checkpoints.
 *
 *   mpirun -n 8 stream --elements 4000000 --iterations 5000 */
#define _POSIX_C_SOURCE 200809L

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STREAM_WITHOUT_DIAPAUSE
#include "diapause/diapause_mpi.h"
#endif

enum kernel { kCopy, kScale, kAdd, kTriad, kKernels };
static const char* const kNames[] = {"Copy", "Scale", "Add", "Triad"};
static const int kArraysMoved[] = {2, 2, 3, 3};

/* With this factor, the square root of two less one, one iteration gives every value back but for
 * its rounding. */
static const double kFactor = 0.41421356237309503;

struct options {
  long elements, iterations;
  const char *config, *name;
};

struct arrays {
  int rank, ranks;
  long n;
  double *a, *b, *c;
#ifndef STREAM_WITHOUT_DIAPAUSE
  diapause_t* checkpoints; /* NULL: it computes without */
#endif
};

struct times {
  double least_s[kKernels], sum_s[kKernels], most_s[kKernels];
  long measured;
};

static void complain(const struct arrays* arrays, const char* what, const char* text) {
  if (arrays->rank == 0) fprintf(stderr, "stream: %s: %s\n", what, text);
}

/* ---- checkpoints ------------------------------------------------------------------------- */

#ifndef STREAM_WITHOUT_DIAPAUSE
/* Ends the program: there are checkpoints and none can be had, so to begin anew would lose them. */
static void give_up(const struct arrays* arrays) {
  complain(arrays, "not beginning anew", diapause_last_error());
  diapause_close(arrays->checkpoints);
  MPI_Finalize();
  exit(1);
}

/* Opens the checkpoints of this run, and returns the iteration to go on from: 0 if there is nothing
 * to continue. */
static long open_and_continue(const struct options* options, struct arrays* arrays) {
  diapause_t** checkpoints = &arrays->checkpoints;
  if (diapause_mpi_open(MPI_COMM_WORLD, options->name, options->config, checkpoints) !=
      DIAPAUSE_OK) {
    complain(arrays, "running without checkpoints", diapause_last_error());
    return 0;
  }
  const uint64_t n = (uint64_t)arrays->n;
  int status = diapause_protect(*checkpoints, "a", arrays->a, n, DIAPAUSE_FLOAT64);
  if (status == DIAPAUSE_OK)
    status = diapause_protect(*checkpoints, "b", arrays->b, n, DIAPAUSE_FLOAT64);
  if (status == DIAPAUSE_OK)
    status = diapause_protect(*checkpoints, "c", arrays->c, n, DIAPAUSE_FLOAT64);
  diapause_restart_info info;
  if (status == DIAPAUSE_OK) status = diapause_restart(*checkpoints, DIAPAUSE_NEWEST, &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  if (status != DIAPAUSE_OK) give_up(arrays);
  return (long)info.version;
}

/* Returns false if the program has to stop. */
static bool checkpoint_if_due(struct arrays* arrays, long iteration) {
  if (arrays->checkpoints == NULL) return true;
  const int status = diapause_snapshot(arrays->checkpoints, (uint64_t)iteration, NULL);
  if (status != DIAPAUSE_OK) complain(arrays, "checkpoint", diapause_last_error());
  if (status == DIAPAUSE_ERR_OFF) { /* nothing more will come of it */
    diapause_close(arrays->checkpoints);
    arrays->checkpoints = NULL;
  }
  return diapause_should_stop(arrays->checkpoints, NULL) == DIAPAUSE_GO_ON;
}

static void end_checkpoints(const struct arrays* arrays, bool is_done) {
  const int status =
      is_done ? diapause_finish(arrays->checkpoints) : diapause_close(arrays->checkpoints);
  if (status != DIAPAUSE_OK) complain(arrays, "checkpoints", diapause_last_error());
}
#endif

/* ---- computation ------------------------------------------------------------------------- */

static bool make_arrays(struct arrays* arrays, long n) {
  arrays->n = n;
  double** const all[] = {&arrays->a, &arrays->b, &arrays->c};
  for (size_t i = 0; i < 3; ++i) {
    *all[i] = malloc((size_t)n * sizeof(double));
    if (*all[i] == NULL) return false;
  }
  return true;
}

static void set_initial_values(const struct arrays* arrays) {
  for (long i = 0; i < arrays->n; ++i) {
    arrays->a[i] = 1;
    arrays->b[i] = 2;
    arrays->c[i] = 0;
  }
}

static void run_kernel(const struct arrays* arrays, enum kernel kernel) {
  double* restrict a = arrays->a, * restrict b = arrays->b, * restrict c = arrays->c;
  const long n = arrays->n;
  switch (kernel) {
    case kCopy:
      for (long i = 0; i < n; ++i) c[i] = a[i];
      break;
    case kScale:
      for (long i = 0; i < n; ++i) b[i] = kFactor * c[i];
      break;
    case kAdd:
      for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];
      break;
    default:
      for (long i = 0; i < n; ++i) a[i] = b[i] + kFactor * c[i];
  }
}

/* One pass over the four kernels. The first pass of a start warms up and is not counted. */
static void iterate_once(const struct arrays* arrays, struct times* times, bool counts) {
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    run_kernel(arrays, (enum kernel)kernel);
    MPI_Barrier(MPI_COMM_WORLD);
    const double took_s = MPI_Wtime() - start_s;
    if (!counts) continue;
    times->sum_s[kernel] += took_s;
    if (times->measured == 0 || took_s < times->least_s[kernel]) times->least_s[kernel] = took_s;
    if (took_s > times->most_s[kernel]) times->most_s[kernel] = took_s;
  }
  if (counts) ++times->measured;
}

/* ---- results ----------------------------------------------------------------------------- */

static void print_rates(const struct arrays* arrays, const struct times* times) {
  if (arrays->rank != 0 || times->measured == 0) return;
  const double bytes = (double)sizeof(double) * (double)arrays->n * arrays->ranks;
  printf("%-8s %12s %12s %12s %12s\n", "kernel", "best_mb_s", "mean_s", "least_s", "most_s");
  for (int k = 0; k < kKernels; ++k) {
    printf("%-8s %12.1f %12.6f %12.6f %12.6f\n", kNames[k],
           kArraysMoved[k] * bytes / times->least_s[k] / 1e6,
           times->sum_s[k] / (double)times->measured, times->least_s[k], times->most_s[k]);
  }
}

/* The greatest relative difference of any value from what the iterations make of the first one. */
static double greatest_error(const struct arrays* arrays, long iterations) {
  double expected[] = {1, 2, 0};
  for (long i = 0; i < iterations; ++i) {
    expected[2] = expected[0];
    expected[1] = kFactor * expected[2];
    expected[2] = expected[0] + expected[1];
    expected[0] = expected[1] + kFactor * expected[2];
  }
  const double* const all[] = {arrays->a, arrays->b, arrays->c};
  double mine = 0, greatest = 0;
  for (size_t k = 0; k < 3; ++k) {
    for (long i = 0; i < arrays->n; ++i) {
      const double error = expected[k] == 0 ? fabs(all[k][i]) : fabs(all[k][i] / expected[k] - 1);
      if (!(error <= mine)) mine = isnan(error) ? HUGE_VAL : error;
    }
  }
  MPI_Allreduce(&mine, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return greatest;
}

/* Compilers may round one of the two computations once less in every step. */
static bool is_right(const struct arrays* arrays, long iterations) {
  const double error = greatest_error(arrays, iterations),
               allowed = 1e-14 * (double)(iterations + 1);
  if (arrays->rank == 0) printf("greatest relative error %.3g, allowed %.3g\n", error, allowed);
  if (!(error <= allowed))
    complain(arrays, "wrong result", "the arrays do not hold what the iterations should give");
  return error <= allowed;
}

/* ---- main -------------------------------------------------------------------------------- */

static bool parse_options(int argc, char** argv, struct options* options) {
  static const struct option known[] = {{"elements", required_argument, NULL, 'e'},
                                        {"iterations", required_argument, NULL, 'i'},
                                        {"config", required_argument, NULL, 'c'},
                                        {"name", required_argument, NULL, 'n'},
                                        {NULL, 0, NULL, 0}};
  *options = (struct options){.elements = 1000000, .iterations = 100, .name = "stream"};
  opterr = 0; /* one usage message is enough */
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (c) {
      case 'e':
        options->elements = atol(optarg);
        break;
      case 'i':
        options->iterations = atol(optarg);
        break;
      case 'c':
        options->config = optarg;
        break;
      case 'n':
        options->name = optarg;
        break;
      default:
        return false;
    }
  }
  return optind == argc && options->elements > 0 && options->iterations >= 0;
}

/* Returns how many iterations are done: all of them, or fewer if the program has to stop. */
static long iterate(const struct options* options, struct arrays* arrays, struct times* times) {
  long done = 0;
#ifndef STREAM_WITHOUT_DIAPAUSE
  done = open_and_continue(options, arrays);
#endif
  if (done == 0) set_initial_values(arrays);
  const long first = done;
  bool goes_on = true;
  while (goes_on && done < options->iterations) {
    iterate_once(arrays, times, done > first);
    ++done;
#ifndef STREAM_WITHOUT_DIAPAUSE
    goes_on = checkpoint_if_due(arrays, done);
#endif
  }
  return done;
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* for work in the background */
  struct options options;
  struct arrays arrays = {0};
  struct times times = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &arrays.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &arrays.ranks);
  if (!parse_options(argc, argv, &options)) {
    complain(&arrays, "usage",
             "stream [--elements N] [--iterations N] [--config FILE] [--name NAME]\n"
             "N elements in each of the three arrays of a rank; at least one.");
    MPI_Finalize();
    return 2;
  }
  if (!make_arrays(&arrays, options.elements)) {
    fprintf(stderr, "stream: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const long done = iterate(&options, &arrays, &times);
  const bool is_done = done >= options.iterations;
  const bool fine = is_right(&arrays, done);
  print_rates(&arrays, &times);
#ifndef STREAM_WITHOUT_DIAPAUSE
  end_checkpoints(&arrays, is_done && fine);
#endif
  if (!is_done)
    complain(&arrays, "stopped", "the checkpoint that was just taken is where it goes on");
  free(arrays.a);
  free(arrays.b);
  free(arrays.c);
  MPI_Finalize();
  return fine ? 0 : 1;
}
