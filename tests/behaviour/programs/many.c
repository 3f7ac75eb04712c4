/* Hundreds of regions of all types and odd sizes, many of them empty, with names up to the longest
 * allowed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task.h"

enum { kRegions = 600, kOpaqueBytes = 13 };

static const uint64_t kElementBytes[] = {kOpaqueBytes, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
static unsigned char* data[kRegions];
static uint64_t counts[kRegions];

static uint64_t bytes_of(int region) { return counts[region] * kElementBytes[region % 11]; }

static void create(struct task* task) {
  for (int i = 0; i < kRegions; ++i) {
    const uint64_t random = mix((uint64_t)task->rank, (uint64_t)i);
    counts[i] = random % 3 == 0 ? 0 : random % 700;
    data[i] = allocate(bytes_of(i));
    fill(data[i], bytes_of(i), random);
  }
}

/* Names of 4 to 255 bytes. */
static void name_of(int region, char name[256]) {
  const int length = 4 + region % 252;
  memset(name, '/', 256);
  snprintf(name, 256, "%d", region);
  name[strlen(name)] = ' ';
  name[length] = '\0';
}

static void protect(struct task* task) {
  for (int i = 0; i < kRegions; ++i) {
    char name[256];
    name_of(i, name);
    const int type = i % 11;
    const int status =
        type == DIAPAUSE_BYTES
            ? diapause_protect_bytes(task->diapause, name, data[i], counts[i], kOpaqueBytes)
            : diapause_protect(task->diapause, name, data[i], counts[i], (diapause_type)type);
    if (!succeeded(task, "protect", status)) return;
  }
}

static void advance(struct task* task, long step) {
  for (int i = 0; i < kRegions; ++i) {
    for (uint64_t k = 0; k < bytes_of(i); ++k) {
      data[i][k] = (unsigned char)mix(data[i][k], (uint64_t)(step + task->rank + i));
    }
  }
}

static uint64_t digest(struct task* task) {
  (void)task;
  uint64_t result = 0;
  for (int i = 0; i < kRegions; ++i) {
    result = digest_bytes(result, data[i], bytes_of(i));
    free(data[i]);
  }
  return result;
}

int main(int argc, char** argv) {
  static const struct program many = {
      .name = "many", .create = create, .protect = protect, .advance = advance, .digest = digest};
  return run_program(argc, argv, &many);
}
