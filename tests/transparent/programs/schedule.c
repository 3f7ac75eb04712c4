/* Threads that are scheduled each in its own way, and one that is as the program was started. */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "step.h"

enum { WAYS = 5, OF_THREAD = 1, BEST_EFFORT = 2 << 13, IDLE = 3 << 13 };

static pthread_barrier_t barrier;

struct way {
  cpu_set_t processors;
  int policy, niceness, io_priority;
};

static struct way way_now(void) {
  struct way now;
  memset(&now, 0, sizeof now);
  MUST(sched_getaffinity(0, sizeof now.processors, &now.processors) == 0);
  now.policy = sched_getscheduler(0);
  now.niceness = getpriority(PRIO_PROCESS, (id_t)gettid());
  now.io_priority = (int)syscall(SYS_ioprio_get, OF_THREAD, 0);
  return now;
}

static void go_own_way(unsigned long number) {
  struct sched_param none = {0};
  cpu_set_t last;
  switch (number) {
    case 1:
      MUST(sched_getaffinity(0, sizeof last, &last) == 0);
      for (int i = 0, count = CPU_COUNT(&last); count > 1; ++i) {
        if (!CPU_ISSET(i, &last)) continue;
        CPU_CLR(i, &last);
        --count;
      }
      MUST(sched_setaffinity(0, sizeof last, &last) == 0);
      break;
    case 2:
      MUST(setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + 3) == 0);
      MUST(syscall(SYS_ioprio_set, OF_THREAD, 0, BEST_EFFORT | 6) == 0);
      break;
    case 3:
      MUST(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none) == 0);
      MUST(setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + 1) == 0);
      break;
    case 4:
      MUST(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
      MUST(syscall(SYS_ioprio_set, OF_THREAD, 0, IDLE) == 0);
      break;
    default:
      break;
  }
}

static void* work(void* argument) {
  go_own_way((unsigned long)argument);
  const struct way own = way_now();
  for (int i = 0; i < STEPS; ++i) {
    pthread_barrier_wait(&barrier);
    const struct way now = way_now();
    MUST(CPU_EQUAL(&now.processors, &own.processors));
    MUST(now.policy == own.policy);
    MUST(now.niceness == own.niceness);
    MUST(now.io_priority == own.io_priority);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, WAYS + 1);
  pthread_t threads[WAYS];
  for (unsigned long i = 0; i < WAYS; ++i)
    MUST(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (int i = 0; i < STEPS; ++i) {
    pthread_barrier_wait(&barrier);
    step(i, 0);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < WAYS; ++i) MUST(pthread_join(threads[i], NULL) == 0);
  return DONE;
}
