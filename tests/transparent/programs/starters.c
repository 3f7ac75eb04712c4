/* Processes that start programs one after the other, and wait in vfork until each has begun. */
#include "step.h"

enum { STARTERS = 3 };

static void start_programs(void) {
  for (;;) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", NULL);
      _exit(1);
    }
    int status = 1;
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    usleep(1000);
  }
}

int main(void) {
  pid_t starters[STARTERS];
  for (int i = 0; i < STARTERS; ++i) {
    starters[i] = fork();
    if (starters[i] == 0) start_programs();
  }
  printf("they start\n");
  fflush(stdout);
  await_gate();
  for (int i = 0; i < STARTERS; ++i) {
    int status = 0;
    MUST(kill(starters[i], SIGKILL) == 0 && waitpid(starters[i], &status, 0) == starters[i] &&
         WTERMSIG(status) == SIGKILL);
  }
  return DONE;
}
