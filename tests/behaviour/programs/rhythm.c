/* Ranks of different speed that call diapause_snapshot in every step: whether a checkpoint is due
 * must be decided alike, or they would wait for each other for ever. */
#define _DEFAULT_SOURCE
#include <time.h>

#include "task.h"

enum { kWords = 4000 };

static uint64_t words[kWords];

static void create(struct task* task) { fill(words, sizeof words, (uint64_t)task->rank); }

static void protect(struct task* task) {
  succeeded(task, "protect",
            diapause_protect(task->diapause, "words", words, kWords, DIAPAUSE_UINT64));
}

/* No messages here: nothing but Diapause keeps the ranks together. */
static void advance(struct task* task, long step) {
  const struct timespec pause = {0, (long)(mix((uint64_t)task->rank, (uint64_t)step) % 3000000)};
  nanosleep(&pause, NULL);
  for (int i = 0; i < kWords; ++i) words[i] = mix(words[i], (uint64_t)(step + task->rank));
}

static uint64_t digest(struct task* task) {
  (void)task;
  return digest_bytes(0, words, sizeof words);
}

int main(int argc, char** argv) {
  static const struct program rhythm = {
      .name = "rhythm", .create = create, .protect = protect, .advance = advance, .digest = digest};
  return run_program(argc, argv, &rhythm);
}
