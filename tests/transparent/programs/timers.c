/* Timers of timer_create, with their ids: of a process, of a thread, of processor time, and one
 * that stands still. */
#include <pthread.h>

#include "step.h"

static volatile sig_atomic_t ticks;
static volatile int calls;

static void count_tick(int number, siginfo_t* info, void* nothing) {
  (void)number, (void)nothing;
  if (info->si_value.sival_int == 77) ++ticks;
}

static void be_called(union sigval value) { calls += value.sival_int; }

int main(void) {
  struct sigaction action = {.sa_sigaction = count_tick, .sa_flags = SA_RESTART | SA_SIGINFO};
  MUST(sigaction(SIGRTMIN + 2, &action, NULL) == 0);
  timer_t none[3], often, once, called, spent;
  struct sigevent event = {
      .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = 77};
  for (int i = 0; i < 3; ++i) MUST(timer_create(CLOCK_REALTIME, NULL, &none[i]) == 0);
  MUST(timer_delete(none[1]) == 0);
  event.sigev_notify = SIGEV_NONE;
  MUST(timer_create(CLOCK_MONOTONIC, &event, &once) == 0);
  event.sigev_notify = SIGEV_SIGNAL;
  MUST(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &spent) == 0);
  struct sigevent call = {
      .sigev_notify = SIGEV_THREAD, .sigev_notify_function = be_called, .sigev_value.sival_int = 3};
  MUST(timer_create(CLOCK_MONOTONIC, &call, &called) == 0);
  struct sigevent own = {
      .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = 77};
  own._sigev_un._tid = gettid();
  MUST(timer_create(CLOCK_MONOTONIC, &own, &often) == 0);
  const struct itimerspec long_one = {{5, 0}, {1000, 0}}, used = {{0, 0}, {3000, 0}};
  MUST(timer_settime(once, 0, &long_one, NULL) == 0 && timer_settime(spent, 0, &used, NULL) == 0);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)(i * 3));
  struct itimerspec now;
  MUST(timer_gettime(once, &now) == 0 && now.it_value.tv_sec > 800 && now.it_value.tv_sec < 1000);
  MUST(now.it_interval.tv_sec == 5);
  MUST(timer_gettime(spent, &now) == 0 && now.it_value.tv_sec > 2900);
  MUST(timer_gettime(none[0], &now) == 0 && now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
  MUST(timer_gettime(none[1], &now) == -1 && errno == EINVAL);
  const struct itimerspec quick = {{0, 5000000}, {0, 5000000}}, stop = {{0, 0}, {0, 0}};
  MUST(timer_settime(often, 0, &quick, NULL) == 0 && timer_settime(called, 0, &quick, NULL) == 0);
  while (ticks < 3 || calls < 9) usleep(1000);
  MUST(timer_settime(often, 0, &stop, NULL) == 0 && timer_settime(called, 0, &stop, NULL) == 0);
  printf("ids %d %d\n", (int)(intptr_t)none[2], (int)(intptr_t)once);
  return DONE;
}
