/* A process that waits in vfork for longer than a checkpoint waits for it to stop, and its parent.
 */
#include "step.h"

static void start_slowly(void) {
  const char* const gate = getenv("TRANSPARENT_GATE");
  const struct timespec length = {gate != NULL && access(gate, F_OK) == 0 ? 0 : 7, 0};
  const pid_t child = vfork();
  if (child == 0) {
    nanosleep(&length, NULL);
    _exit(3);
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  _exit(4);
}

int main(void) {
  printf("begins\n");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) start_slowly();
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  return DONE;
}
