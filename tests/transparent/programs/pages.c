/* Pages that are all zero, and huge ones: a lot of memory, of which little has to be stored. */
#include "step.h"

enum { HUGE_BYTES = 2 << 20, HUGE_PAGES = 8 };
static const size_t kBytes = (size_t)HUGE_BYTES * HUGE_PAGES;

/* Returns a number of the area that holds `address`, in KiB. */
static long huge_kib_at(const void* address) {
  FILE* const maps = fopen("/proc/self/smaps", "r");
  MUST(maps != NULL);
  char line[512];
  unsigned long begin = 0, end = 0;
  long kib = -1, value = 0;
  while (kib < 0 && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) continue;
    const unsigned long here = (unsigned long)address;
    if (here >= begin && here < end && sscanf(line, "AnonHugePages: %ld kB", &value) == 1)
      kib = value;
  }
  fclose(maps);
  return kib;
}

static unsigned char* map(size_t bytes, int flags) {
  unsigned char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  MUST(memory != MAP_FAILED);
  return memory;
}

int main(void) {
  unsigned char* const cleared = map(kBytes, MAP_PRIVATE);
  unsigned char* const shared = map(kBytes, MAP_SHARED);
  memset(cleared, 7, kBytes);
  memset(cleared, 0, kBytes);
  memset(shared, 0, kBytes);
  unsigned char* const room = map(kBytes + HUGE_BYTES, MAP_PRIVATE);
  unsigned char* const huge =
      (unsigned char*)(((uintptr_t)room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
  madvise(huge, kBytes, MADV_HUGEPAGE);
  for (int i = 0; i < HUGE_PAGES; ++i)
    huge[(size_t)i * HUGE_BYTES + 12345] = (unsigned char)(i + 1);
  const long huge_kib = huge_kib_at(huge);
  for (int i = 0; i < STEPS; ++i) {
    cleared[(size_t)i * 200000] = shared[(size_t)i * 250000] = (unsigned char)i;
    step(i, (unsigned long)huge[(size_t)(i % HUGE_PAGES) * HUGE_BYTES + 12345]);
  }
  unsigned long sum = 0;
  for (size_t i = 0; i < kBytes; ++i) sum += cleared[i] + 3ul * shared[i] + 7ul * huge[i];
  /* The machine may give fewer pages than before, but not none. */
  MUST(huge_kib <= 0 || huge_kib_at(huge) > 0);
  printf("sum %lu\n", sum);
  return DONE;
}
