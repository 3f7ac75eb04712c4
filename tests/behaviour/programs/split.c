/* Two instances in every rank: one on its half of MPI_COMM_WORLD, one on all of it, each with its
 * own name, levels and rhythm. Each may come back at another step. */
#include <stdio.h>

#include "task.h"

enum { kWords = 20000 };

struct part {
  diapause_t* diapause;
  MPI_Comm comm;
  const char *name, *levels;
  long done, every;
  uint64_t words[kWords];
};

static struct part half, whole;

/* Every rank's words depend on those of the one before it in the communicator. */
static void advance(struct part* part, long step) {
  int rank, ranks;
  MPI_Comm_rank(part->comm, &rank);
  MPI_Comm_size(part->comm, &ranks);
  uint64_t from_before = 0;
  MPI_Sendrecv(&part->words[kWords - 1], 1, MPI_UINT64_T, (rank + 1) % ranks, 0, &from_before, 1,
               MPI_UINT64_T, (rank + ranks - 1) % ranks, 0, part->comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < kWords; ++i)
    part->words[i] = mix(part->words[i] ^ from_before, (uint64_t)(step + i));
  part->done = step;
}

static void open_part(const struct task* task, struct part* part) {
  if (task->plain) return;
  diapause_restart_info info;
  if (!succeeded(task, "open", diapause_mpi_open(part->comm, part->name, NULL, &part->diapause)))
    return;
  succeeded(task, "protect",
            diapause_protect(part->diapause, "words", part->words, kWords, DIAPAUSE_UINT64));
  const int status = diapause_restart(part->diapause, DIAPAUSE_NEWEST, &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return;
  if (succeeded(task, "restart", status)) part->done = (long)info.version;
}

static void step_to(struct task* task, struct part* part) {
  if (part->done >= task->done) return;
  advance(part, task->done);
  if (part->diapause == NULL || part->done % part->every != 0) return;
  task->levels = part->levels;
  task->every = part->every;
  succeeded(task, part->name,
            diapause_checkpoint(part->diapause, (uint64_t)part->done, level_now(task), NULL));
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* for work in the background */
  struct task task;
  if (!parse_task(argc, argv, &task)) MPI_Abort(MPI_COMM_WORLD, 2);
  const int side = task.rank % 2;
  half = (struct part){.name = side ? "split-odd" : "split-even",
                       .levels = side ? "24" : "1",
                       .every = side ? 3 : 2};
  whole = (struct part){.comm = MPI_COMM_WORLD, .name = "split-whole", .levels = "31", .every = 4};
  MPI_Comm_split(MPI_COMM_WORLD, side, task.rank, &half.comm);
  fill(half.words, sizeof half.words, (uint64_t)task.rank);
  fill(whole.words, sizeof whole.words, (uint64_t)(100 + task.rank));
  open_part(&task, &half);
  open_part(&task, &whole);
  long first = half.done < whole.done ? half.done : whole.done;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
  const bool fresh = half.done == 0 && whole.done == 0;
  for (task.done = first + 1; task.done <= task.steps; ++task.done) {
    step_to(&task, &half);
    die_if_asked(&task, fresh);
    step_to(&task, &whole);
  }
  write_result(&task, digest_bytes(digest_bytes(0, half.words, sizeof half.words), whole.words,
                                   sizeof whole.words));
  succeeded(&task, "close", diapause_close(half.diapause));
  succeeded(&task, "close", diapause_close(whole.diapause));
  MPI_Comm_free(&half.comm);
  MPI_Finalize();
  return 0;
}
