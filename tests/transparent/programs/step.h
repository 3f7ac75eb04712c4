/* Shared by the programs. They print a line a step, the same in every run, and end with status 7.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 60, DONE = 7 };

/* Ends the program with a line that no undisturbed run prints. */
#define MUST(condition)                                                \
  do {                                                                 \
    if (!(condition)) {                                                \
      printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      fflush(stdout);                                                  \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

/* Sleeps for a while, and notices if that was cut short. */
static inline void pause_ms(long ms) {
  struct timespec length = {ms / 1000, ms % 1000 * 1000000};
  struct timespec left = {0, 0};
  MUST(nanosleep(&length, &left) == 0);
}

/* Waits until the test that runs the program lets it come to its end. Only so can the test disturb
 * it before. */
static inline void await_gate(void) {
  const char* gate = getenv("TRANSPARENT_GATE");
  while (gate != NULL && access(gate, F_OK) != 0) pause_ms(10);
}

static inline void step(int number, unsigned long value) {
  printf("%d %lu\n", number, value);
  fflush(stdout);
  pause_ms(10);
  if (number == STEPS * 3 / 4) await_gate();
}

static inline uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
