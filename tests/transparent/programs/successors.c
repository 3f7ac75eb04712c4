/* A process of many threads, one of which starts the same program again, and so on until the test
 * lets it end. */
#include <pthread.h>

#include "step.h"

enum { THREADS = 12 };

static void* wait_for_nothing(void* none) {
  for (;;) pause();
  return none;
}

static void* start_again(void* program) {
  char* const arguments[] = {program, "again", NULL};
  pause_ms(1);
  execv(program, arguments);
  exit(1);
}

int main(int count, char** arguments) {
  const char* const gate = getenv("TRANSPARENT_GATE");
  if (count == 1) printf("begins\n");
  if (gate == NULL || access(gate, F_OK) == 0) {
    printf("ends\n");
    return DONE;
  }
  fflush(stdout);
  pthread_t thread;
  for (int i = 0; i < THREADS; ++i)
    MUST(pthread_create(&thread, NULL, wait_for_nothing, NULL) == 0);
  MUST(pthread_create(&thread, NULL, start_again, arguments[0]) == 0);
  for (;;) pause();
}
