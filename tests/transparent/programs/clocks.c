/* Clocks, as the kernel's own code in the process tells them, and as the kernel does when it is
 * asked. A second thread is in that code nearly all the time. Those that begin with the machine
 * neither go back nor leap, wherever the program goes on. */
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

#include "step.h"

static volatile int is_over;
static volatile uint64_t looks;

static void* look(void* nothing) {
  uint64_t before = 0;
  while (!is_over) {
    struct timespec now;
    struct timeval of_day;
    MUST(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && gettimeofday(&of_day, NULL) == 0);
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    MUST(now_ns >= before && of_day.tv_sec > 1000000000);
    before = now_ns;
    ++looks;
  }
  return nothing;
}

static void compare(clockid_t clock) {
  struct timespec told, asked;
  MUST(clock_gettime(clock, &told) == 0 && syscall(SYS_clock_gettime, clock, &asked) == 0);
  const int64_t apart_ms =
      (asked.tv_sec - told.tv_sec) * 1000 + (asked.tv_nsec - told.tv_nsec) / 1000000;
  MUST(apart_ms > -1000 && apart_ms < 10000);
  MUST(clock_getres(clock, &told) == 0 && syscall(SYS_clock_getres, clock, &asked) == 0);
  MUST(told.tv_sec == asked.tv_sec && told.tv_nsec == asked.tv_nsec);
}

/* Waits until a time to come, and returns it. */
static struct timespec wait_until_soon(clockid_t clock) {
  struct timespec time;
  MUST(clock_gettime(clock, &time) == 0);
  time.tv_nsec += 2000000;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  MUST(clock_nanosleep(clock, TIMER_ABSTIME, &time, NULL) == 0);
  return time;
}

int main(void) {
  const clockid_t since_boot[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME};
  struct timespec before_wait[2];
  for (int i = 0; i < 2; ++i) before_wait[i] = wait_until_soon(since_boot[i]);
  pthread_t other;
  MUST(pthread_create(&other, NULL, look, NULL) == 0);
  for (int i = 0; i < STEPS; ++i) {
    const uint64_t before = looks;
    compare(CLOCK_REALTIME);
    compare(CLOCK_MONOTONIC);
    compare(CLOCK_MONOTONIC_COARSE);
    compare(CLOCK_BOOTTIME);
    const time_t told = time(NULL);
    const long asked = syscall(SYS_time, NULL);
    MUST(asked - told >= -1 && asked - told < 10);
    struct timeval of_day;
    MUST(gettimeofday(&of_day, NULL) == 0 && of_day.tv_sec - told < 10);
    MUST(sched_getcpu() >= 0);
    for (int k = 0; k < 2; ++k) {
      const struct timespec now = wait_until_soon(since_boot[k]);
      const time_t seconds = now.tv_sec - before_wait[k].tv_sec;
      MUST(seconds >= 0 && seconds < 60);
      before_wait[k] = now;
    }
    step(i, (unsigned long)(i * 5));
    while (looks == before) usleep(1000);
  }
  is_over = 1;
  MUST(pthread_join(other, NULL) == 0);
  return DONE;
}
