/* Message benchmarks: Sendrecv around a ring, Reduce, Allreduce and Gather, with messages from 1
 * byte to 4 MB. Between the repetitions the program asks for a checkpoint, as programs that
 * communicate do; the message buffers are protected. Everything that has to do with checkpoints
 * stands between MESSAGES_WITHOUT_DIAPAUSE guards; compiled with that macro, it is the same program
 * without checkpoints.
 *
 * Rank 0 prints a line for each operation and size: operation,bytes,repetitions,time_us,mbytes_s.
 * The time is the mean over the repetitions, of the rank that took longest.
 *
 *   mpirun -n 8 messages --largest 4194304 --seconds 0.5 */
#define _POSIX_C_SOURCE 200809L

#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MESSAGES_WITHOUT_DIAPAUSE
#include "diapause/diapause_mpi.h"
#endif

struct options {
  long largest, most_repetitions;
  double seconds; /* about as long as each size is measured */
  const char *config, *name;
};

struct bench {
  int rank, ranks;
  long largest;
  /* The buffers have the size of the largest message. Rank 0 of a Gather receives one from each
   * rank. */
  char *sent, *received;
#ifndef MESSAGES_WITHOUT_DIAPAUSE
  diapause_t* checkpoints; /* NULL: it runs without */
  uint64_t version;
#endif
};

typedef void operation_function(const struct bench* bench, int bytes);

static void complain(const struct bench* bench, const char* what, const char* text) {
  if (bench->rank == 0) fprintf(stderr, "messages: %s: %s\n", what, text);
}

/* ---- checkpoints ------------------------------------------------------------------------- */

#ifndef MESSAGES_WITHOUT_DIAPAUSE
/* A benchmark that was interrupted begins anew: nothing is restored. */
static void open_checkpoints(const struct options* options, struct bench* bench) {
  diapause_t** checkpoints = &bench->checkpoints;
  int status = diapause_mpi_open(MPI_COMM_WORLD, options->name, options->config, checkpoints);
  if (status == DIAPAUSE_OK) {
    status = diapause_protect(*checkpoints, "sent", bench->sent, (uint64_t)bench->largest,
                              DIAPAUSE_UINT8);
  }
  if (status != DIAPAUSE_OK) complain(bench, "running without checkpoints", diapause_last_error());
}

static void checkpoint_if_due(struct bench* bench) {
  if (bench->checkpoints == NULL) return;
  const int status = diapause_snapshot(bench->checkpoints, ++bench->version, NULL);
  if (status == DIAPAUSE_OK) return;
  complain(bench, "checkpoint", diapause_last_error());
  diapause_close(bench->checkpoints);
  bench->checkpoints = NULL;
}

static void end_checkpoints(struct bench* bench) {
  const int status = diapause_finish(bench->checkpoints);
  if (status != DIAPAUSE_OK) complain(bench, "checkpoints", diapause_last_error());
}
#endif

/* ---- operations -------------------------------------------------------------------------- */

static void sendrecv(const struct bench* bench, int bytes) {
  const int right = (bench->rank + 1) % bench->ranks,
            left = (bench->rank + bench->ranks - 1) % bench->ranks;
  MPI_Sendrecv(bench->sent, bytes, MPI_BYTE, right, 0, bench->received, bytes, MPI_BYTE, left, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sums of bytes below the size of a number, of numbers from there on. */
static MPI_Datatype unit_of(int bytes) {
  return bytes % (int)sizeof(float) == 0 ? MPI_FLOAT : MPI_UNSIGNED_CHAR;
}
static int count_of(int bytes) {
  return bytes % (int)sizeof(float) == 0 ? bytes / (int)sizeof(float) : bytes;
}

static void reduce(const struct bench* bench, int bytes) {
  MPI_Reduce(bench->sent, bench->received, count_of(bytes), unit_of(bytes), MPI_SUM, 0,
             MPI_COMM_WORLD);
}

static void allreduce(const struct bench* bench, int bytes) {
  MPI_Allreduce(bench->sent, bench->received, count_of(bytes), unit_of(bytes), MPI_SUM,
                MPI_COMM_WORLD);
}

static void gather(const struct bench* bench, int bytes) {
  MPI_Gather(bench->sent, bytes, MPI_BYTE, bench->received, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  operation_function* run;
} kOperations[] = {
    {"Sendrecv", sendrecv}, {"Reduce", reduce}, {"Allreduce", allreduce}, {"Gather", gather}};

/* ---- measurement ------------------------------------------------------------------------- */

enum { kFewest = 4 };

/* Returns how many repetitions come next, if so many took so long. They last until the time is
 * over, but are at most as many again, because on a busy machine the next ones may take much longer
 * than the last. */
static long next_repetitions(const struct options* options, long done, double took_s) {
  const double left = (double)done * (options->seconds - took_s) / (took_s > 1e-7 ? took_s : 1e-7);
  const long wanted = left < (double)done ? (long)left : done;
  const long next = wanted > kFewest ? wanted : kFewest;
  const long most = options->most_repetitions - done;
  return next < most ? next : most;
}

/* Rounds of repetitions follow one another until the time is over. The rank that took longest
 * decides for all, between the rounds, outside the time that is measured. */
static void measure(const struct options* options, struct bench* bench, size_t which, int bytes) {
  operation_function* run = kOperations[which].run;
  run(bench, bytes); /* warms up */
  long repetitions = 0;
  double mine_s = 0, longest_s = 0;
  do {
    const long round = next_repetitions(options, repetitions, longest_s);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    for (long i = 0; i < round; ++i) {
      run(bench, bytes);
#ifndef MESSAGES_WITHOUT_DIAPAUSE
      checkpoint_if_due(bench);
#endif
    }
    mine_s += MPI_Wtime() - start_s;
    repetitions += round;
    MPI_Allreduce(&mine_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  } while (longest_s < options->seconds && repetitions < options->most_repetitions);
  const double mean_s = longest_s / (double)repetitions;
  if (bench->rank != 0) return;
  /* A rank sends one message and receives one in a Sendrecv: both count, as in the benchmark that
   * this follows. */
  printf("%s,%d,%ld,%.4f,%.4f\n", kOperations[which].name, bytes, repetitions, mean_s * 1e6,
         2 * bytes / mean_s / 1e6);
  fflush(stdout);
}

/* ---- main -------------------------------------------------------------------------------- */

static bool parse_options(int argc, char** argv, struct options* options) {
  static const struct option known[] = {
      {"largest", required_argument, NULL, 'l'}, {"repetitions", required_argument, NULL, 'r'},
      {"seconds", required_argument, NULL, 's'}, {"config", required_argument, NULL, 'c'},
      {"name", required_argument, NULL, 'n'},    {NULL, 0, NULL, 0}};
  *options = (struct options){
      .largest = 4L << 20, .most_repetitions = 10000, .seconds = 0.5, .name = "messages"};
  opterr = 0; /* one usage message is enough */
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (c) {
      case 'l':
        options->largest = atol(optarg);
        break;
      case 'r':
        options->most_repetitions = atol(optarg);
        break;
      case 's':
        options->seconds = atof(optarg);
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
  return optind == argc && options->largest >= 1 && options->largest <= (64L << 20) &&
         options->most_repetitions >= 1 && options->seconds >= 0;
}

static bool make_buffers(struct bench* bench, long largest) {
  bench->largest = largest;
  bench->sent = calloc((size_t)largest, 1);
  bench->received = malloc((size_t)largest * (size_t)bench->ranks);
  if (bench->received != NULL) memset(bench->received, 0, (size_t)largest * (size_t)bench->ranks);
  return bench->sent != NULL && bench->received != NULL;
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* for work in the background */
  struct options options;
  struct bench bench = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);
  if (!parse_options(argc, argv, &options)) {
    complain(
        &bench, "usage",
        "messages [--largest BYTES] [--seconds S] [--repetitions N] [--config FILE] [--name NAME]\n"
        "Messages of 1 byte to BYTES, at most 64 MiB; each size for about S seconds and at most N "
        "times.");
    MPI_Finalize();
    return 2;
  }
  if (!make_buffers(&bench, options.largest)) {
    fprintf(stderr, "messages: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
#ifndef MESSAGES_WITHOUT_DIAPAUSE
  open_checkpoints(&options, &bench);
#endif
  if (bench.rank == 0) printf("operation,bytes,repetitions,time_us,mbytes_s\n");
  for (size_t which = 0; which < sizeof kOperations / sizeof kOperations[0]; ++which) {
    for (long bytes = 1; bytes <= options.largest; bytes *= 2)
      measure(&options, &bench, which, (int)bytes);
  }
#ifndef MESSAGES_WITHOUT_DIAPAUSE
  end_checkpoints(&bench);
#endif
  free(bench.sent);
  free(bench.received);
  MPI_Finalize();
  return 0;
}
