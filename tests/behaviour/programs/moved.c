/* A region that lies at another address in every step. The old places stay readable and hold
 * something wrong. */
#include <stdlib.h>

#include "task.h"

enum { kBytes = 200000, kPlaces = 5 };

static unsigned char* places[kPlaces];
static unsigned char* values;

static void create(struct task* task) {
  for (int i = 0; i < kPlaces; ++i) places[i] = allocate(kBytes);
  values = places[0];
  fill(values, kBytes, (uint64_t)task->rank);
}

static void protect(struct task* task) {
  succeeded(task, "protect",
            diapause_protect(task->diapause, "values", values, kBytes, DIAPAUSE_UINT8));
}

static void advance(struct task* task, long step) {
  unsigned char* to = places[step % kPlaces];
  for (size_t i = 0; i < kBytes; ++i)
    to[i] = (unsigned char)mix(values[i], (uint64_t)(step + task->rank));
  values = to;
  for (int i = 0; i < kPlaces; ++i) {
    if (places[i] != values) fill(places[i], 64, mix((uint64_t)step, (uint64_t)i));
  }
}

static uint64_t digest(struct task* task) {
  const uint64_t result = digest_bytes(0, values, kBytes);
  unprotect(task, "values");
  for (int i = 0; i < kPlaces; ++i) free(places[i]);
  return result;
}

int main(int argc, char** argv) {
  static const struct program moved = {
      .name = "moved", .create = create, .protect = protect, .advance = advance, .digest = digest};
  return run_program(argc, argv, &moved);
}
