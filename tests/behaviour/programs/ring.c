/* A token goes round. At every checkpoint a receive that takes any message of any sender is open on
 * MPI_COMM_WORLD (or, where ranks are dedicated, on what diapause_comm gives), and messages of
 * ranks that have left the checkpoint already are under way to ranks that have not. */
#include <stdlib.h>

#include "task.h"

enum { kTokenWords = 3000 };

static uint64_t* token;    /* what this rank knows */
static uint64_t* incoming; /* where the open receive puts the next one */
static MPI_Request open_receive;

static void create(struct task* task) {
  token = allocate(kTokenWords * sizeof *token);
  incoming = allocate(kTokenWords * sizeof *incoming);
  fill(token, kTokenWords * sizeof *token, (uint64_t)task->rank);
}

static void protect(struct task* task) {
  succeeded(task, "protect",
            diapause_protect(task->diapause, "token", token, kTokenWords, DIAPAUSE_UINT64));
}

static void listen_to_all(const struct task* task) {
  MPI_Irecv(incoming, kTokenWords, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, task->comm,
            &open_receive);
}

static void resume(struct task* task) { listen_to_all(task); }

static void advance(struct task* task, long step) {
  const int next = (task->rank + 1) % task->ranks;
  MPI_Send(token, kTokenWords, MPI_UINT64_T, next, (int)step, task->comm);
  MPI_Status status;
  MPI_Wait(&open_receive, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  for (int i = 0; i < count; ++i) token[i] = mix(incoming[i], (uint64_t)(step + status.MPI_TAG));
  listen_to_all(task);
}

static uint64_t digest(struct task* task) {
  (void)task;
  MPI_Cancel(&open_receive);
  MPI_Wait(&open_receive, MPI_STATUS_IGNORE);
  const uint64_t result = digest_bytes(0, token, kTokenWords * sizeof *token);
  free(token);
  free(incoming);
  return result;
}

int main(int argc, char** argv) {
  static const struct program ring = {.name = "ring",
                                      .create = create,
                                      .protect = protect,
                                      .resume = resume,
                                      .advance = advance,
                                      .digest = digest};
  return run_program(argc, argv, &ring);
}
