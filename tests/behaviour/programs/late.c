/* A region that is protected only after the first checkpoint; whether a version holds it tells the
 * restart. */
#include <stdio.h>

#include "task.h"

enum { kWords = 1000, kSecondFrom = 5 };

static uint64_t first[kWords], second[kWords];

static void create(struct task* task) {
  fill(first, sizeof first, (uint64_t)task->rank);
  fill(second, sizeof second, 99);
}

static void protect(struct task* task) {
  succeeded(task, "protect",
            diapause_protect(task->diapause, "first", first, kWords, DIAPAUSE_UINT64));
  if (task->done < kSecondFrom) return;
  succeeded(task, "protect",
            diapause_protect(task->diapause, "second", second, kWords, DIAPAUSE_UINT64));
}

static void make_room(struct task* task) {
  diapause_region_info info;
  const int found = diapause_stored_find(task->diapause, "second", &info);
  const int expected = task->done < kSecondFrom ? DIAPAUSE_ERR_NOT_FOUND : DIAPAUSE_OK;
  if (found != expected) fprintf(stderr, "rank %d: stored_find gives %d\n", task->rank, found);
  protect(task);
}

static void advance(struct task* task, long step) {
  for (int i = 0; i < kWords; ++i) first[i] = mix(first[i], (uint64_t)(step + task->rank));
  for (int i = 0; i < kWords && step >= kSecondFrom; ++i) second[i] = mix(second[i], first[i]);
}

static uint64_t digest(struct task* task) {
  (void)task;
  return digest_bytes(digest_bytes(0, first, sizeof first), second, sizeof second);
}

int main(int argc, char** argv) {
  static const struct program late = {.name = "late",
                                      .create = create,
                                      .protect = protect,
                                      .make_room = make_room,
                                      .advance = advance,
                                      .digest = digest};
  return run_program(argc, argv, &late);
}
