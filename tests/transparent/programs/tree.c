/* Processes: a tree with pipes that hold something, sessions, groups, and ends that parents wait
 * for. */
#include "step.h"

static void run_child(int from, int to, int number) {
  if (number == 1) MUST(setsid() == getpid());
  if (number == 2) MUST(setpgid(0, 0) == 0);
  int value = 0;
  while (read(from, &value, sizeof value) == sizeof value) {
    MUST(number != 1 || getsid(0) == getpid());
    MUST(number != 2 || getpgrp() == getpid());
    value = value * 3 + number;
    MUST(write(to, &value, sizeof value) == sizeof value);
  }
  _exit(10 + number);
}

static volatile int told;

static void count_end(int number) {
  (void)number;
  ++told;
}

/* Ended, and nobody waits for them until the end. */
static pid_t end_at_once(int signal) {
  const pid_t child = fork();
  if (child == 0) {
    if (signal != 0) kill(getpid(), signal);
    _exit(42);
  }
  return child;
}

int main(void) {
  const struct sigaction count = {.sa_handler = count_end, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &count, NULL);
  const pid_t ended = end_at_once(0), killed = end_at_once(SIGTERM);
  MUST(waitid(P_PID, (id_t)killed, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
  MUST(waitid(P_PID, (id_t)ended, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
  const int told_before = told;
  enum { CHILDREN = 4, AHEAD = 100 };
  int pipes[CHILDREN + 1][2];
  pid_t children[CHILDREN];
  for (int i = 0; i <= CHILDREN; ++i) MUST(pipe(pipes[i]) == 0);
  MUST(fcntl(pipes[0][1], F_SETPIPE_SZ, 1 << 17) == 1 << 17);
  for (int i = 0; i < CHILDREN; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      for (int j = 0; j <= CHILDREN; ++j) {
        if (j != i) close(pipes[j][0]);
        if (j != i + 1) close(pipes[j][1]);
      }
      run_child(pipes[i][0], pipes[i + 1][1], i);
    }
  }
  const int first = pipes[0][1], last = pipes[CHILDREN][0];
  for (int i = 0; i <= CHILDREN; ++i) {
    if (i != CHILDREN) close(pipes[i][0]);
    if (i != 0) close(pipes[i][1]);
  }
  int sent = 0;
  for (; sent < AHEAD; ++sent) MUST(write(first, &sent, sizeof sent) == sizeof sent);
  for (int i = 0; i < STEPS; ++i) {
    int value = 0;
    MUST(read(last, &value, sizeof value) == sizeof value);
    step(i, (unsigned long)value);
    MUST(write(first, &sent, sizeof sent) == sizeof sent);
    ++sent;
  }
  MUST(fcntl(first, F_GETPIPE_SZ) == 1 << 17);
  MUST(told == told_before); /* of each end once */
  int status = 0;
  MUST(waitpid(ended, &status, 0) == ended && WIFEXITED(status) && WEXITSTATUS(status) == 42);
  MUST(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  close(first);
  unsigned long rest = 0;
  int value = 0;
  while (read(last, &value, sizeof value) == sizeof value) rest = rest * 5 + (unsigned long)value;
  printf("rest %lu\n", rest);
  for (int i = 0; i < CHILDREN; ++i) {
    MUST(waitpid(children[i], &status, 0) == children[i]);
    printf("child %d: %d\n", i, WEXITSTATUS(status));
  }
  return DONE;
}
