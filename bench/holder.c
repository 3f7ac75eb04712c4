/* holder hold MIB: fills so much memory, says "ready", and waits. holder copy MIB: at each line of input copies as much
   between two places that are warm, and prints the seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Nothing that compresses, and no page of zeros. */
static unsigned long* filled(size_t bytes) {
  unsigned long* const memory = malloc(bytes);
  unsigned long value = 88172645463325252ul;
  if (memory == NULL) exit(1);
  for (size_t i = 0; i < bytes / sizeof *memory; ++i) {
    value ^= value << 13, value ^= value >> 7, value ^= value << 17;
    memory[i] = value;
  }
  return memory;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const size_t bytes = (size_t)atol(words[2]) << 20;
  unsigned long* const memory = filled(bytes);
  unsigned long* const other = strcmp(words[1], "copy") == 0 ? filled(bytes) : NULL;
  puts("ready");
  fflush(stdout);
  char line[64];
  while (other == NULL) usleep(10000);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const double begin_s = now_s();
    memcpy(other, memory, bytes);
    printf("%.9f\n", now_s() - begin_s);
    fflush(stdout);
    memory[0] += other[1];
  }
  return 0;
}
