/* Ranks of an MPI program that compute on their own and use Diapause without MPI, each under its
 * own name. */
#include <stdio.h>

#include "task.h"

enum { kWords = 5000 };

static uint64_t words[kWords];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct task task;
  if (!parse_task(argc, argv, &task)) MPI_Abort(MPI_COMM_WORLD, 2);
  char name[64];
  snprintf(name, sizeof name, "single-%d", task.rank);
  fill(words, sizeof words, (uint64_t)task.rank);
  diapause_restart_info info = {0};
  bool fresh = true;
  if (!task.plain && succeeded(&task, "open", diapause_open(name, NULL, &task.diapause))) {
    succeeded(&task, "protect",
              diapause_protect(task.diapause, "words", words, kWords, DIAPAUSE_UINT64));
    const int status = diapause_restart(task.diapause, DIAPAUSE_NEWEST, &info);
    fresh = status == DIAPAUSE_ERR_NOT_FOUND;
    if (!fresh && succeeded(&task, "restart", status)) task.done = (long)info.version;
  }
  while (task.done < task.steps) {
    ++task.done;
    for (int i = 0; i < kWords; ++i) words[i] = mix(words[i], (uint64_t)(task.done + task.rank));
    die_if_asked(&task, fresh);
    if (task.diapause == NULL || task.done % (task.every + task.rank) != 0) continue;
    succeeded(&task, "checkpoint",
              diapause_checkpoint(task.diapause, (uint64_t)task.done, DIAPAUSE_L1, NULL));
  }
  write_result(&task, digest_bytes(0, words, sizeof words));
  succeeded(&task, "close", diapause_close(task.diapause));
  MPI_Finalize();
  return 0;
}
