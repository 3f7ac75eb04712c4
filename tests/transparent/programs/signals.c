/* Actions, masks, signals that wait with their values, an alternative stack, an interval timer. */
#include <sys/time.h>

#include "step.h"

static volatile sig_atomic_t alarms;
static volatile sig_atomic_t on_alternative;
static char alternative[64 * 1024];

static void count_alarm(int number) {
  (void)number;
  ++alarms;
}

static void look_where(int number) {
  (void)number;
  const char here = 0;
  on_alternative = &here >= alternative && &here < alternative + sizeof alternative;
}

int main(void) {
  const stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
  MUST(sigaltstack(&stack, NULL) == 0);
  struct sigaction action = {.sa_handler = look_where, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = count_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  signal(SIGUSR2, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN + 1);
  sigaddset(&blocked, SIGALRM);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  for (int i = 0; i < 5; ++i)
    MUST(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 100 + i}) == 0);
  const struct itimerval often = {{0, 50000}, {0, 50000}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < STEPS; ++i) {
    step(i, (unsigned long)sigismember(&blocked, SIGALRM));
    if (i == STEPS / 2) raise(SIGUSR2);
  }
  for (int i = 0; i < 5; ++i) {
    siginfo_t got;
    MUST(sigwaitinfo(&blocked, &got) > 0);
    if (got.si_signo == SIGALRM) {
      --i;
      continue;
    }
    MUST(got.si_code == SI_QUEUE && got.si_pid == getpid());
    printf("value %d\n", got.si_value.sival_int);
  }
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  while (alarms < 2) pause();
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  MUST(raise(SIGUSR1) == 0 && on_alternative);
  printf("on the alternative stack\n");
  return DONE;
}
