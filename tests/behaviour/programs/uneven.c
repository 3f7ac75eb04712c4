/* Ranks of very different sizes: megabytes, nothing at all, a single byte, some pages. */
#include <stdlib.h>

#include "task.h"

static unsigned char* values;
static size_t count;

static void create(struct task* task) {
  static const size_t counts[] = {3 * 1024 * 1024 + 5, 0, 1, 70000, 0, 4096};
  count = counts[task->rank % 6];
  values = allocate(count);
  fill(values, count, (uint64_t)task->rank);
}

/* A rank without data protects no region. */
static void protect(struct task* task) {
  if (count == 0) return;
  succeeded(task, "protect",
            diapause_protect(task->diapause, "values", values, count, DIAPAUSE_UINT8));
}

static void advance(struct task* task, long step) {
  uint64_t sum = (uint64_t)(step + task->rank);
  for (size_t i = 0; i < count; i += 61) values[i] = (unsigned char)(sum = mix(sum, values[i]));
}

static uint64_t digest(struct task* task) {
  (void)task;
  return digest_bytes(count, values, count); /* without free(): they may still be captured */
}

int main(int argc, char** argv) {
  static const struct program uneven = {
      .name = "uneven", .create = create, .protect = protect, .advance = advance, .digest = digest};
  return run_program(argc, argv, &uneven);
}
