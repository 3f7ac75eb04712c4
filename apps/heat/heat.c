/* Heat distribution in a square plate with fixed hot and cold borders: Jacobi iteration on an n x n
 * grid, cut into bands of rows, one per MPI rank. It is written as a user of Diapause would write
 * it. Everything that has to do with checkpoints stands between HEAT_WITHOUT_DIAPAUSE guards;
 * compiled with that macro, it is the same program without checkpoints.
 *
 *   mpirun -n 8 heat --size 1024 --iterations 10000 --output field.raw --picture field.png */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef HEAT_WITHOUT_DIAPAUSE
#include "diapause/diapause_mpi.h"
#endif
#include "picture.h"

static const double kHot = 100, kCold = 0;

struct options {
  long size, iterations;
  double min_ms_per_iteration;
  const char *output, *picture, *progress, *config, *name;
};

/* This rank's band: rows [first, first + rows) of the grid, with one row of its neighbours above
 * and below. */
struct band {
  int rank, ranks;
  long n, first, rows;
  double *now, *next; /* (rows + 2) x n */
#ifndef HEAT_WITHOUT_DIAPAUSE
  diapause_t* checkpoints; /* NULL: it computes without */
#endif
};

static void complain(const struct band* band, const char* what, const char* text) {
  if (band->rank == 0) fprintf(stderr, "heat: %s: %s\n", what, text);
}

/* ---- checkpoints: all that Diapause needs ------------------------------------------------ */

#ifndef HEAT_WITHOUT_DIAPAUSE
/* Opens the checkpoints of this run. */
static void open_checkpoints(const struct options* options, struct band* band) {
  if (diapause_mpi_open(MPI_COMM_WORLD, options->name, options->config, &band->checkpoints) !=
      DIAPAUSE_OK) {
    complain(band, "running without checkpoints", diapause_last_error());
  }
}

/* The neighbours' rows are fetched anew in every iteration, so only the band itself is kept. */
static int protect_field(const struct band* band) {
  const uint64_t n = (uint64_t)band->n;
  const uint64_t shape[] = {(uint64_t)band->rows, n}, whole[] = {n, n},
                 start[] = {(uint64_t)band->first, 0};
  return diapause_protect_block(band->checkpoints, "field", band->now + band->n, DIAPAUSE_FLOAT64,
                                2, shape, whole, start);
}

/* Ends the program: there are checkpoints and none can be had, so to begin anew would lose them. */
static void give_up(const struct band* band, const char* text) {
  complain(band, "not beginning anew", text);
  diapause_close(band->checkpoints);
  MPI_Finalize();
  exit(1);
}

/* Puts back the newest checkpoint and returns its iteration, or 0 if there is none. */
static long continue_from_checkpoint(const struct band* band, long iterations) {
  diapause_t* diapause = band->checkpoints;
  if (diapause == NULL) return 0;
  diapause_restart_info info;
  int status = protect_field(band);
  if (status == DIAPAUSE_OK) status = diapause_restart(diapause, DIAPAUSE_NEWEST, &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  if (status != DIAPAUSE_OK) give_up(band, diapause_last_error());
  if (info.version > (uint64_t)iterations)
    give_up(band, "the checkpoint is of a later iteration than the last one asked for");
  if (info.stepped_back)
    complain(band, "continuing from an older checkpoint", diapause_restart_reason(diapause));
  return (long)info.version;
}

/* Takes a checkpoint if one is due. The two fields swap places in every iteration, so the region is
 * protected again. Returns false if the program has to stop: the batch system wants the nodes back.
 * */
static bool checkpoint_if_due(struct band* band, long iteration) {
  if (band->checkpoints == NULL) return true;
  int status = protect_field(band);
  if (status == DIAPAUSE_OK)
    status = diapause_snapshot(band->checkpoints, (uint64_t)iteration, NULL);
  if (status != DIAPAUSE_OK) complain(band, "checkpoint", diapause_last_error());
  if (status == DIAPAUSE_ERR_OFF) { /* nothing more will come of it */
    diapause_close(band->checkpoints);
    band->checkpoints = NULL;
  }
  return diapause_should_stop(band->checkpoints, NULL) == DIAPAUSE_GO_ON;
}

/* When the results are written, nothing is left to go on with, so the next run begins anew.
 * Otherwise it continues. */
static void end_checkpoints(const struct band* band, bool has_results) {
  const int status =
      has_results ? diapause_finish(band->checkpoints) : diapause_close(band->checkpoints);
  if (status != DIAPAUSE_OK) complain(band, "checkpoints", diapause_last_error());
}
#endif

/* ---- computation ------------------------------------------------------------------------- */

/* The hot border lies at the top; four hot discs in the plate cool down. */
static double initial_heat(long n, long i, long j) {
  static const double discs[][3] = {
      {.30, .25, .09}, {.42, .70, .14}, {.72, .35, .12}, {.80, .82, .06}};
  if (i == 0) return kHot;
  if (i == n - 1 || j == 0 || j == n - 1) return kCold;
  for (size_t d = 0; d < sizeof discs / sizeof discs[0]; ++d) {
    const double y = (double)i / (double)n - discs[d][0], x = (double)j / (double)n - discs[d][1];
    if (x * x + y * y < discs[d][2] * discs[d][2]) return kHot;
  }
  return kCold;
}

static bool make_band(struct band* band, long n) {
  band->n = n;
  band->first = n * band->rank / band->ranks;
  band->rows = n * (band->rank + 1) / band->ranks - band->first;
  const size_t cells = (size_t)((band->rows + 2) * n);
  band->now = calloc(cells, sizeof(double));
  band->next = calloc(cells, sizeof(double));
  return band->now != NULL && band->next != NULL;
}

static void set_initial_heat(const struct band* band) {
  for (long i = 0; i < band->rows; ++i) {
    for (long j = 0; j < band->n; ++j) {
      band->now[(i + 1) * band->n + j] = initial_heat(band->n, band->first + i, j);
    }
  }
}

static void exchange_borders(const struct band* band) {
  const int above = band->rank > 0 ? band->rank - 1 : MPI_PROC_NULL;
  const int below = band->rank < band->ranks - 1 ? band->rank + 1 : MPI_PROC_NULL;
  const int n = (int)band->n;
  double *top = band->now + band->n, *bottom = band->now + band->rows * band->n;
  MPI_Sendrecv(top, n, MPI_DOUBLE, above, 0, bottom + n, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(bottom, n, MPI_DOUBLE, below, 1, top - n, n, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Does one Jacobi iteration, from `now` to `next`. Border cells stay as they are. */
static void relax(const struct band* band) {
  const long n = band->n;
  for (long i = 1; i <= band->rows; ++i) {
    const double *up = band->now + (i - 1) * n, *row = up + n, *down = row + n;
    double* restrict out = band->next + i * n;
    const long global_row = band->first + i - 1;
    if (global_row == 0 || global_row == n - 1) {
      memcpy(out, row, (size_t)n * sizeof *out);
      continue;
    }
    out[0] = row[0];
    for (long j = 1; j < n - 1; ++j)
      out[j] = 0.25 * ((up[j] + down[j]) + (row[j - 1] + row[j + 1]));
    out[n - 1] = row[n - 1];
  }
}

/* The largest change of the last iteration, anywhere. */
static double residual(const struct band* band) {
  double mine = 0, all = 0;
  for (long k = band->n; k < (band->rows + 1) * band->n; ++k)
    mine = fmax(mine, fabs(band->next[k] - band->now[k]));
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static void wait_until(double end_s) {
  const double left_s = end_s - MPI_Wtime();
  if (left_s <= 0) return;
  const struct timespec pause = {(time_t)left_s, (long)((left_s - floor(left_s)) * 1e9)};
  nanosleep(&pause, NULL);
}

/* ---- results ----------------------------------------------------------------------------- */

static bool write_output(const struct band* band, const char* path) {
  MPI_Datatype row;
  MPI_File file;
  MPI_Type_contiguous((int)band->n, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  const MPI_Offset row_bytes = (MPI_Offset)sizeof(double) * band->n;
  int status =
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  if (status == MPI_SUCCESS) {
    status = MPI_File_set_size(file, row_bytes * band->n);
    const int written = MPI_File_write_at_all(file, row_bytes * band->first, band->now + band->n,
                                              (int)band->rows, row, MPI_STATUS_IGNORE);
    const int closed = MPI_File_close(&file);
    status = status != MPI_SUCCESS ? status : written != MPI_SUCCESS ? written : closed;
  }
  MPI_Type_free(&row);
  int failed = status != MPI_SUCCESS;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (failed) complain(band, path, "cannot write the field");
  return !failed;
}

static bool draw_picture(const struct band* band, const char* path) {
  const long n = band->n;
  MPI_Datatype row;
  MPI_Type_contiguous((int)n, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  int *counts = calloc((size_t)band->ranks, sizeof *counts),
      *starts = calloc((size_t)band->ranks, sizeof *starts);
  for (int r = 0; r < band->ranks; ++r) {
    starts[r] = (int)(n * r / band->ranks);
    counts[r] = (int)(n * (r + 1) / band->ranks) - starts[r];
  }
  double* field = band->rank == 0 ? malloc((size_t)(n * n) * sizeof *field) : NULL;
  MPI_Gatherv(band->now + n, (int)band->rows, row, field, counts, starts, row, 0, MPI_COMM_WORLD);
  const bool drawn = band->rank != 0 || picture_write(path, field, n, kCold, kHot) == 0;
  if (!drawn) complain(band, path, strerror(errno));
  free(field);
  free(starts);
  free(counts);
  MPI_Type_free(&row);
  return drawn;
}

/* ---- main -------------------------------------------------------------------------------- */

static bool parse_options(int argc, char** argv, int ranks, struct options* options) {
  static const struct option known[] = {{"size", required_argument, NULL, 's'},
                                        {"iterations", required_argument, NULL, 'i'},
                                        {"output", required_argument, NULL, 'o'},
                                        {"picture", required_argument, NULL, 'p'},
                                        {"progress", required_argument, NULL, 'r'},
                                        {"min-ms-per-iteration", required_argument, NULL, 'm'},
                                        {"config", required_argument, NULL, 'c'},
                                        {"name", required_argument, NULL, 'n'},
                                        {NULL, 0, NULL, 0}};
  *options = (struct options){.size = 1024, .iterations = 10000, .name = "heat"};
  opterr = 0; /* one usage message is enough */
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (c) {
      case 's':
        options->size = atol(optarg);
        break;
      case 'i':
        options->iterations = atol(optarg);
        break;
      case 'm':
        options->min_ms_per_iteration = atof(optarg);
        break;
      case 'o':
        options->output = optarg;
        break;
      case 'p':
        options->picture = optarg;
        break;
      case 'r':
        options->progress = optarg;
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
  return optind == argc && options->size >= 3 && options->size >= ranks &&
         options->size <= 100000 && options->iterations >= 0;
}

/* Returns true when all iterations are done; false if the program had to stop before. */
static bool iterate(const struct options* options, struct band* band) {
  long done = 0;
  bool goes_on = true;
#ifndef HEAT_WITHOUT_DIAPAUSE
  open_checkpoints(options, band);
  done = continue_from_checkpoint(band, options->iterations);
#endif
  if (done == 0) set_initial_heat(band);

  FILE* progress =
      band->rank == 0 && options->progress != NULL ? fopen(options->progress, "a") : NULL;
  const long report_every = options->iterations > 200 ? options->iterations / 200 : 1;
  while (goes_on && done < options->iterations) {
    const double start_s = MPI_Wtime();
    exchange_borders(band);
    relax(band);
    ++done;
    if (done % report_every == 0) {
      const double change = residual(band);
      if (progress != NULL)
        fprintf(progress, "%ld %ld %.6e\n", done, options->iterations, change), fflush(progress);
    }
    double* swapped = band->now;
    band->now = band->next;
    band->next = swapped;
#ifndef HEAT_WITHOUT_DIAPAUSE
    goes_on = checkpoint_if_due(band, done);
#endif
    if (options->min_ms_per_iteration > 0)
      wait_until(start_s + options->min_ms_per_iteration / 1000);
  }
  if (progress != NULL) fclose(progress);
  return done == options->iterations;
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* for work in the background */
  struct options options;
  struct band band = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &band.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &band.ranks);
  if (!parse_options(argc, argv, band.ranks, &options)) {
    complain(&band, "usage",
             "heat [--size N] [--iterations N] [--output FILE] [--picture FILE] [--progress FILE]\n"
             "            [--min-ms-per-iteration MS] [--config FILE] [--name NAME]\n"
             "N x N cells; at least one row per rank and at most 100000.");
    MPI_Finalize();
    return 2;
  }
  if (!make_band(&band, options.size)) {
    fprintf(stderr, "heat: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (!iterate(&options, &band)) {
#ifndef HEAT_WITHOUT_DIAPAUSE
    end_checkpoints(&band, false);
#endif
    complain(&band, "stopped", "the checkpoint that was just taken is where it goes on");
    MPI_Finalize();
    return 0; /* diapause run knows; mpirun would take anything else for a failure and kill the
                 other ranks */
  }
  bool fine = true;
  if (options.output != NULL) fine = write_output(&band, options.output);
  if (options.picture != NULL) fine = draw_picture(&band, options.picture) && fine;
#ifndef HEAT_WITHOUT_DIAPAUSE
  end_checkpoints(&band, fine);
#endif
  free(band.now);
  free(band.next);
  MPI_Finalize();
  return fine ? 0 : 1;
}
