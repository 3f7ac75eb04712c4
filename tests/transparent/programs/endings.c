/* Children whose ends are told by other signals than SIGCHLD, or not at all. Only a parent that
 * asks for such children (__WCLONE) can wait for them. */
#include "step.h"

enum { OF_REAL_TIME = 40, STATUS = 42 };

static volatile int heard[65];

static void hear(int number) { ++heard[number]; }

/* A child that waits to be killed. */
static pid_t start(int signal) {
  const pid_t child = (pid_t)syscall(SYS_clone, signal, 0, 0, 0, 0);
  MUST(child >= 0);
  while (child == 0) pause();
  return child;
}

/* One that has ended, and for which nobody has waited. */
static pid_t end_at_once(int signal) {
  const pid_t child = (pid_t)syscall(SYS_clone, signal, 0, 0, 0, 0);
  MUST(child >= 0);
  if (child == 0) _exit(STATUS);
  MUST(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT | __WALL) == 0);
  return child;
}

static void stop(pid_t child) {
  MUST(kill(child, SIGSTOP) == 0);
  MUST(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WSTOPPED | __WALL) == 0);
}

static void must_hear(int children, int user, int real_time) {
  MUST(heard[SIGCHLD] == children);
  MUST(heard[SIGUSR1] == user);
  MUST(heard[OF_REAL_TIME] == real_time);
}

static void kill_and_wait(pid_t child) {
  int status = 0;
  MUST(kill(child, SIGKILL) == 0);
  MUST(waitpid(child, &status, __WCLONE) == child);
  MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void wait_for_end_of(pid_t child) {
  int status = 0;
  MUST(waitpid(child, &status, __WCLONE) == child);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
}

int main(void) {
  const int signals[] = {SIGCHLD, SIGUSR1, OF_REAL_TIME};
  for (int i = 0; i < 3; ++i)
    MUST(sigaction(signals[i], &(struct sigaction){.sa_handler = hear, .sa_flags = SA_RESTART},
                   NULL) == 0);
  const pid_t ended = end_at_once(OF_REAL_TIME), ended_unheard = end_at_once(0);
  const pid_t unheard = start(0), stopped = start(SIGUSR1), user = start(SIGUSR1);
  const pid_t real_time = start(OF_REAL_TIME);
  stop(stopped); /* which is told by SIGCHLD, whatever the signal of its end */
  for (int i = 0; i < STEPS; ++i) {
    must_hear(1, 0, 1);
    MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    step(i, 1);
  }
  wait_for_end_of(ended);
  wait_for_end_of(ended_unheard);
  kill_and_wait(unheard);
  must_hear(1, 0, 1);
  kill_and_wait(user);
  must_hear(1, 1, 1);
  kill_and_wait(stopped);
  must_hear(1, 2, 1);
  kill_and_wait(real_time);
  must_hear(1, 2, 2);
  return DONE;
}
