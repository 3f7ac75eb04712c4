/* holder hold MIB: fills so much memory, says "ready", and waits. holder change MIB: at each line
   of input writes to each tenth MiB of it, another one each time, and says "changed". holder copy
   MIB: at each line of input copies as much between two places that are warm, and prints the
   seconds. */
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

/* The data cannot be compressed, and no page is all zeros. */
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

static void change(char* memory, size_t bytes, int number) {
  const size_t mib = 1 << 20;
  for (size_t at = (size_t)(number % 10) * mib; at + mib <= bytes; at += 10 * mib)
    memset(memory + at, number + 1, mib);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const size_t bytes = (size_t)atol(words[2]) << 20;
  unsigned long* const memory = filled(bytes);
  unsigned long* const other = strcmp(words[1], "copy") == 0 ? filled(bytes) : NULL;
  puts("ready");
  fflush(stdout);
  char line[64];
  const int changes = strcmp(words[1], "change") == 0;
  for (int number = 0; changes && fgets(line, sizeof line, stdin) != NULL; ++number) {
    change((char*)memory, bytes, number);
    puts("changed");
    fflush(stdout);
  }
  while (other == NULL && !changes) usleep(10000);
  while (other != NULL && fgets(line, sizeof line, stdin) != NULL) {
    const double begin_s = now_s();
    memcpy(other, memory, bytes);
    printf("%.9f\n", now_s() - begin_s);
    fflush(stdout);
    memory[0] += other[1];
  }
  return 0;
}
