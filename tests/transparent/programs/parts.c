/* Much memory, of which a part changes at each step. Whether all is there is seen by a child, which
   is forked for that. */
#include "step.h"

enum { PARTS = 16, BYTES = 2 << 20 };

static unsigned long sum_of(const unsigned char* memory, size_t bytes) {
  unsigned long sum = 0;
  for (size_t at = 0; at < bytes; at += sizeof sum) {
    unsigned long word = 0;
    memcpy(&word, memory + at, sizeof word);
    sum = sum * 31 + word;
  }
  return sum;
}

static unsigned long seen_by_child(const unsigned char* memory, size_t bytes) {
  int ends[2];
  unsigned long sum = 0;
  MUST(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    sum = sum_of(memory, bytes);
    _exit(write(ends[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
  }
  MUST(read(ends[0], &sum, sizeof sum) == sizeof sum);
  int status = 1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  close(ends[0]), close(ends[1]);
  return sum;
}

int main(void) {
  const size_t bytes = (size_t)PARTS * BYTES;
  unsigned char* const memory =
      mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED && mprotect(memory + bytes, 4096, PROT_NONE) == 0);
  for (size_t at = 0; at < bytes; ++at) memory[at] = (unsigned char)(1 + at % 253);
  for (int i = 0; i < STEPS; ++i) {
    unsigned char* const part = memory + (size_t)(i % PARTS) * BYTES;
    /* A quarter becomes zero, and later something again. */
    memset(part, i + 1, BYTES);
    if (i % 3 == 0) memset(part + BYTES / 2, 0, BYTES / 4);
    step(i, seen_by_child(memory, bytes));
  }
  return DONE;
}
