#define _DEFAULT_SOURCE
#include "task.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char kUsage[] =
    "--steps N        compute so many steps\n"
    "--every N        a checkpoint after every N-th step\n"
    "--levels DIGITS  their levels, in turn\n"
    "--snapshot       call diapause_snapshot in every step instead\n"
    "--funneled       ask MPI for no more than MPI_THREAD_FUNNELED, and Diapause in every step how "
    "far it is\n"
    "--plain          do not use Diapause at all\n"
    "--pace-ms MS     a step takes at least so long\n"
    "--die-at STEP    when nothing was restored: rank --die-rank kills itself after this step\n"
    "--hold-at STEP   when nothing was restored: wait after this step to be killed\n"
    "--name NAME      of the instance\n"
    "--result FILE    rank 0 writes a line for each rank\n"
    "--trace PREFIX   each rank appends what it restored and stored to PREFIX.<rank>\n";

static void compute_on(struct task* task, MPI_Comm comm) {
  task->comm = comm;
  MPI_Comm_rank(comm, &task->rank);
  MPI_Comm_size(comm, &task->ranks);
}

bool parse_task(int argc, char** argv, struct task* task) {
  static const struct option known[] = {
      {"steps", 1, NULL, 's'},    {"every", 1, NULL, 'e'},    {"levels", 1, NULL, 'l'},
      {"snapshot", 0, NULL, 'S'}, {"plain", 0, NULL, 'P'},    {"pace-ms", 1, NULL, 'p'},
      {"die-at", 1, NULL, 'd'},   {"die-rank", 1, NULL, 'r'}, {"hold-at", 1, NULL, 'h'},
      {"name", 1, NULL, 'n'},     {"result", 1, NULL, 'o'},   {"trace", 1, NULL, 't'},
      {"funneled", 0, NULL, 'f'}, {NULL, 0, NULL, 0}};
  *task = (struct task){.steps = 12, .every = 3, .levels = "1", .die_at = -1, .hold_at = -1};
  compute_on(task, MPI_COMM_WORLD);
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (c) {
      case 's':
        task->steps = atol(optarg);
        break;
      case 'e':
        task->every = atol(optarg);
        break;
      case 'l':
        task->levels = optarg;
        break;
      case 'S':
        task->snapshot = true;
        break;
      case 'f':
        task->funneled = true;
        break;
      case 'P':
        task->plain = true;
        break;
      case 'p':
        task->pace_ms = atol(optarg);
        break;
      case 'd':
        task->die_at = atol(optarg);
        break;
      case 'r':
        task->die_rank = atoi(optarg);
        break;
      case 'h':
        task->hold_at = atol(optarg);
        break;
      case 'n':
        task->name = optarg;
        break;
      case 'o':
        task->result = optarg;
        break;
      case 't':
        task->trace = optarg;
        break;
      default:
        return false;
    }
  }
  return optind == argc;
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  return x ^ (x >> 32);
}

void fill(void* data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char*)data)[i] = (unsigned char)mix(seed, i);
}

void unprotect(struct task* task, const char* region) {
  if (task->diapause != NULL)
    succeeded(task, "unprotect", diapause_unprotect(task->diapause, region));
}

uint64_t digest_bytes(uint64_t digest, const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    digest = (digest ^ ((const unsigned char*)data)[i]) * 0x100000001b3u;
  return mix(digest, bytes);
}

void* allocate(size_t bytes) {
  if (bytes == 0) return NULL;
  void* memory = malloc(bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

bool succeeded(const struct task* task, const char* what, int status) {
  if (status == DIAPAUSE_OK) return true;
  fprintf(stderr, "rank %d: %s: %s: %s\n", task->rank, what, diapause_status_name(status),
          diapause_last_error());
  return false;
}

static void trace(const struct task* task, const char* event, uint64_t version, int level,
                  int flag) {
  if (task->trace == NULL) return;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", task->trace, task->rank);
  FILE* file = fopen(path, "a");
  if (file == NULL) return;
  fprintf(file, "%s %" PRIu64 " %d %d\n", event, version, level, flag);
  fclose(file);
}

static void sleep_ms(long ms) {
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
}

/* The communication of the background is done in calls such as this one. */
static void attend(const struct task* task) {
  diapause_progress progress;
  const uint64_t newest = (uint64_t)(task->done - task->done % task->every);
  (void)diapause_poll(task->diapause, newest, &progress); /* there may be none yet */
}

/* Versions that are in flight still become whole meanwhile. */
static void wait_to_be_killed(const struct task* task) {
  enum { LIMIT_MS = 60000, STEP_MS = 10 };
  for (long waited = 0; waited < LIMIT_MS; waited += STEP_MS) {
    sleep_ms(STEP_MS);
    if (task->funneled && task->diapause != NULL) attend(task);
  }
  fprintf(stderr, "rank %d: nobody killed me\n", task->rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void die_if_asked(const struct task* task, bool fresh) {
  if (fresh && task->done == task->die_at && task->rank == task->die_rank) raise(SIGKILL);
  if (fresh && task->done == task->hold_at) wait_to_be_killed(task);
}

int level_now(const struct task* task) {
  const size_t number = (size_t)(task->done / task->every - 1);
  return task->levels[number % strlen(task->levels)] - '0';
}

void write_result(const struct task* task, uint64_t digest) {
  uint64_t* digests = allocate((size_t)task->ranks * sizeof *digests);
  MPI_Gather(&digest, 1, MPI_UINT64_T, digests, 1, MPI_UINT64_T, 0, task->comm);
  FILE* file = task->rank == 0 && task->result != NULL ? fopen(task->result, "w") : NULL;
  for (int r = 0; file != NULL && r < task->ranks; ++r) {
    fprintf(file, "rank %d after %ld steps: %016" PRIx64 "\n", r, task->steps, digests[r]);
  }
  if (file != NULL) fclose(file);
  free(digests);
}

/* Returns true if a version was restored. */
static bool restart(struct task* task, const struct program* program) {
  diapause_restart_info info;
  const int begun = diapause_restart_begin(task->diapause, DIAPAUSE_NEWEST, &info);
  if (begun == DIAPAUSE_ERR_NOT_FOUND) return false;
  if (!succeeded(task, "restart_begin", begun)) return false;
  void (*prepare)(struct task*) =
      program->make_room != NULL ? program->make_room : program->protect;
  task->done = (long)info.version;
  prepare(task);
  succeeded(task, "restore", diapause_restore(task->diapause, NULL, 0));
  succeeded(task, "restart_end", diapause_restart_end(task->diapause));
  trace(task, "restart", info.version, info.level, info.stepped_back);
  return true;
}

static void checkpoint(struct task* task, const struct program* program) {
  if (!task->snapshot && task->done % task->every != 0) return;
  diapause_checkpoint_info info;
  program->protect(task);
  const int status = task->snapshot ? diapause_snapshot(task->diapause, (uint64_t)task->done, &info)
                                    : diapause_checkpoint(task->diapause, (uint64_t)task->done,
                                                          level_now(task), &info);
  if (succeeded(task, "checkpoint", status) && info.taken) {
    trace(task, "checkpoint", info.version, info.level_asked, info.level_reached);
  }
}

/* Returns whether the program goes on, and says why not. */
static bool may_go_on(const struct task* task) {
  diapause_stop_info info;
  if (!task->snapshot || diapause_should_stop(task->diapause, &info) == DIAPAUSE_GO_ON) return true;
  trace(task, "stop", (uint64_t)task->done, info.signal, info.rank);
  return false;
}

/* Returns true when all steps are done; false if the program had to stop. */
static bool compute(struct task* task, const struct program* program, bool fresh) {
  if (program->resume != NULL) program->resume(task);
  while (task->done < task->steps) {
    program->advance(task, ++task->done);
    if (task->pace_ms > 0) sleep_ms(task->pace_ms);
    die_if_asked(task, fresh);
    if (task->diapause == NULL) continue;
    checkpoint(task, program);
    if (task->funneled) attend(task);
    if (!may_go_on(task)) return false;
  }
  return true;
}

/* Returns whether this rank computes. */
static bool opened(struct task* task) {
  if (task->plain) return true;
  if (!succeeded(task, "open",
                 diapause_mpi_open(MPI_COMM_WORLD, task->name, NULL, &task->diapause)))
    return true;
  MPI_Comm comm;
  if (!succeeded(task, "comm", diapause_comm(task->diapause, &comm)) || comm == MPI_COMM_NULL)
    return false;
  int ranks;
  MPI_Comm_size(comm, &ranks);
  if (ranks < task->ranks) compute_on(task, comm); /* others are dedicated */
  return true;
}

static void run(struct task* task, const struct program* program) {
  if (program->create != NULL) program->create(task);
  const bool fresh = task->diapause == NULL || !restart(task, program);
  if (compute(task, program, fresh)) write_result(task, program->digest(task));
}

int run_program(int argc, char** argv, const struct program* program) {
  bool funneled = false;
  for (int i = 1; i < argc; ++i) funneled = funneled || strcmp(argv[i], "--funneled") == 0;
  int threads; /* for work in the background */
  MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &threads);
  struct task task;
  if (!parse_task(argc, argv, &task)) {
    fprintf(stderr, "%s", kUsage);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (task.name == NULL) task.name = program->name;
  if (opened(&task)) run(&task, program);
  succeeded(&task, "close", diapause_close(task.diapause));
  MPI_Finalize();
  return 0;
}
