/* Memory whose properties change again and again. Each time the program asks the kernel whether
   they are what it has made them. */
#include "step.h"

enum { BYTES = 40 << 20, TIMES = 4 };

/* Returns whether the mapping that begins there has a flag such as " dc". */
static int has(const void* memory, const char* flag) {
  static char line[8192];
  char begin[32];
  int is_there = 0, found = -1;
  FILE* const file = fopen("/proc/self/smaps", "r");
  MUST(file != NULL);
  snprintf(begin, sizeof begin, "%lx-", (unsigned long)(uintptr_t)memory);
  while (found < 0 && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, begin, strlen(begin)) == 0) is_there = 1;
    if (is_there && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, flag) != NULL;
  }
  fclose(file);
  MUST(found >= 0);
  return found;
}

int main(void) {
  unsigned char* const memory =
      mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED && mprotect(memory + BYTES, 4096, PROT_NONE) == 0);
  for (size_t at = 0; at < BYTES; at += 512) memory[at] = (unsigned char)(1 + at / 512 % 251);
  for (int i = 0; i < STEPS; ++i) {
    for (int k = 0; k < TIMES; ++k) {
      const int is_set = (i + k) % 2;
      MUST(madvise(memory, BYTES, is_set ? MADV_DONTFORK : MADV_DOFORK) == 0);
      MUST(madvise(memory, BYTES, is_set ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) == 0);
      pause_ms(2);
      MUST(has(memory, " dc") == is_set && has(memory, " nh") == is_set &&
           has(memory, " hg") != is_set);
    }
    unsigned long sum = 0;
    for (size_t at = 0; at < BYTES; at += 512) sum = sum * 31 + memory[at];
    step(i, sum);
  }
  return DONE;
}
