/* Regions that come, go and come back: a version holds exactly those protected when it was taken.
 */
#include <stdio.h>

#include "task.h"

enum { kRegions = 12, kWords = 300 };

static uint64_t words[kRegions][kWords];
static bool is_protected[kRegions];

static bool lives(int rank, int region, long step) {
  return mix((uint64_t)(rank + 31 * region), (uint64_t)step) % 3 != 0;
}

static void create(struct task* task) { fill(words, sizeof words, (uint64_t)task->rank); }

static void protect(struct task* task) {
  for (int i = 0; i < kRegions; ++i) {
    char name[16];
    snprintf(name, sizeof name, "region %d", i);
    if (lives(task->rank, i, task->done)) {
      succeeded(task, "protect",
                diapause_protect(task->diapause, name, words[i], kWords, DIAPAUSE_UINT64));
      is_protected[i] = true;
    } else if (is_protected[i]) {
      succeeded(task, "unprotect", diapause_unprotect(task->diapause, name));
      is_protected[i] = false;
    }
  }
}

static void make_room(struct task* task) {
  protect(task);
  int64_t alive = 0;
  for (int i = 0; i < kRegions; ++i) alive += lives(task->rank, i, task->done);
  if (diapause_stored_count(task->diapause) != alive)
    fprintf(stderr, "rank %d: wrong number of regions\n", task->rank);
  for (int64_t i = 0; i < alive; ++i) {
    diapause_region_info info;
    int number = -1;
    if (!succeeded(task, "stored_at", diapause_stored_at(task->diapause, (uint64_t)i, &info)))
      return;
    sscanf(info.name, "region %d", &number);
    if (number < 0 || number >= kRegions || !is_protected[number])
      fprintf(stderr, "'%s' is stored\n", info.name);
  }
}

/* A region that does not live begins anew, so nothing is missing from a version. */
static void advance(struct task* task, long step) {
  for (int i = 0; i < kRegions; ++i) {
    for (int k = 0; k < kWords; ++k) words[i][k] = mix(words[i][k], (uint64_t)(step + i));
    if (!lives(task->rank, i, step)) fill(words[i], sizeof words[i], (uint64_t)step);
  }
}

/* Regions that were not stored are known all the same. */
static void resume(struct task* task) {
  for (int i = 0; i < kRegions && task->done > 0; ++i) {
    if (!lives(task->rank, i, task->done)) fill(words[i], sizeof words[i], (uint64_t)task->done);
  }
}

static uint64_t digest(struct task* task) {
  (void)task;
  return digest_bytes(0, words, sizeof words);
}

int main(int argc, char** argv) {
  static const struct program dropped = {.name = "dropped",
                                         .create = create,
                                         .protect = protect,
                                         .make_room = make_room,
                                         .resume = resume,
                                         .advance = advance,
                                         .digest = digest};
  return run_program(argc, argv, &dropped);
}
