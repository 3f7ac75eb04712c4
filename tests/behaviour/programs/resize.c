/* A region that grows and shrinks in every step, down to nothing, differently on every rank. A
 * restart asks how large it was. */
#include <stdio.h>
#include <stdlib.h>

#include "task.h"

static int32_t* values;
static size_t count;

static size_t count_at(int rank, long step) {
  const uint64_t random = mix((uint64_t)rank, (uint64_t)step);
  return random % 5 == 0 ? 0 : random % 60000;
}

static void create(struct task* task) {
  count = count_at(task->rank, 0);
  values = allocate(count * sizeof *values);
  fill(values, count * sizeof *values, (uint64_t)task->rank);
}

static void protect(struct task* task) {
  succeeded(task, "protect",
            diapause_protect(task->diapause, "values", values, count, DIAPAUSE_INT32));
}

/* A capture of the old place may be under way until the new one is protected. */
static void move(struct task* task, int32_t* to, size_t to_count) {
  int32_t* const from = values;
  values = to;
  count = to_count;
  if (task->diapause != NULL) protect(task);
  free(from);
}

static void make_room(struct task* task) {
  diapause_region_info info;
  if (!succeeded(task, "stored_find", diapause_stored_find(task->diapause, "values", &info)))
    return;
  if (info.count != count_at(task->rank, task->done))
    fprintf(stderr, "rank %d: wrong count\n", task->rank);
  move(task, allocate(info.count * sizeof *values), info.count);
}

static void advance(struct task* task, long step) {
  const size_t wanted = count_at(task->rank, step);
  int32_t* grown = allocate(wanted * sizeof *grown);
  for (size_t i = 0; i < wanted; ++i)
    grown[i] = (int32_t)mix(i < count ? (uint64_t)values[i] : 7u, (uint64_t)step);
  move(task, grown, wanted);
}

static uint64_t digest(struct task* task) {
  const uint64_t result = digest_bytes(count, values, count * sizeof *values);
  unprotect(task, "values");
  free(values);
  return result;
}

int main(int argc, char** argv) {
  static const struct program resize = {.name = "resize",
                                        .create = create,
                                        .protect = protect,
                                        .make_room = make_room,
                                        .advance = advance,
                                        .digest = digest};
  return run_program(argc, argv, &resize);
}
