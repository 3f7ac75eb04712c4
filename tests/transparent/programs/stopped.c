/* Processes that a signal has stopped: one whose parent knows, one whose parent does not, and one
 * with threads, and one for which a signal waits that ends it. */
#include <pthread.h>
#include <sys/prctl.h>

#include "step.h"

static volatile sig_atomic_t told;

static void count(int number) {
  (void)number;
  ++told;
}

static void* count_up(void* at) {
  for (;;) {
    ++*(volatile long*)at;
    usleep(1000);
  }
  return NULL;
}

static pid_t begin(int threads) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  static long counters[4];
  pthread_t made;
  for (int i = 0; i < threads; ++i) pthread_create(&made, NULL, count_up, &counters[i]);
  raise(SIGSTOP);
  raise(SIGSTOP);
  _exit(5);
}

int main(void) {
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  // One after the other, because signals of two children that stop at once become one.
  const pid_t known = begin(0);
  while (told < 1) usleep(1000);
  const pid_t threads = begin(3);
  while (told < 2) usleep(1000);
  const pid_t unknown = begin(0);
  while (told < 3) usleep(1000);
  const pid_t doomed = begin(2); /* ends of a signal as soon as it goes on */
  while (told < 4) usleep(1000);
  int status = 0;
  MUST(waitpid(known, &status, WUNTRACED) == known && WIFSTOPPED(status));
  MUST(waitpid(threads, &status, WUNTRACED) == threads && WIFSTOPPED(status));
  MUST(waitpid(doomed, &status, WUNTRACED) == doomed && WIFSTOPPED(status));
  MUST(kill(doomed, SIGALRM) == 0);
  siginfo_t info;
  MUST(waitid(P_PID, (id_t)unknown, &info, WSTOPPED | WNOWAIT) == 0);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)told);
  MUST(waitpid(known, &status, WUNTRACED | WNOHANG) == 0);
  MUST(waitpid(threads, &status, WUNTRACED | WNOHANG) == 0);
  MUST(waitpid(doomed, &status, WUNTRACED | WNOHANG) == 0);
  MUST(waitpid(unknown, &status, WUNTRACED | WNOHANG) == unknown && WIFSTOPPED(status) &&
       WSTOPSIG(status) == SIGSTOP);
  for (int i = 0; i < 2; ++i) {
    const pid_t child = i == 0 ? known : threads;
    MUST(kill(child, SIGCONT) == 0 && waitpid(child, &status, WUNTRACED) == child &&
         WSTOPSIG(status) == SIGSTOP);
    MUST(kill(child, SIGCONT) == 0 && waitpid(child, &status, 0) == child &&
         WEXITSTATUS(status) == 5);
  }
  MUST(kill(doomed, SIGCONT) == 0 && waitpid(doomed, &status, 0) == doomed &&
       WTERMSIG(status) == SIGALRM);
  MUST(kill(unknown, SIGKILL) == 0 && waitpid(unknown, &status, 0) == unknown &&
       WTERMSIG(status) == SIGKILL);
  printf("all went on\n");
  return DONE;
}
