/* Threads that wait for one another: ids, thread-local storage, locks that know who holds them. */
#include <pthread.h>

#include "step.h"

enum { THREADS = 4 };

static __thread unsigned long own;
static pthread_mutex_t checked, robust, inheriting;
static pthread_barrier_t barrier;
static unsigned long total;

static void* work(void* argument) {
  const unsigned long number = (unsigned long)argument;
  const pid_t id = gettid();
  own = number;
  char name[16];
  snprintf(name, sizeof name, "worker-%lu", number);
  pthread_setname_np(pthread_self(), name);
  for (int i = 0; i < STEPS; ++i) {
    MUST(pthread_mutex_lock(&checked) == 0);
    MUST(pthread_mutex_lock(&inheriting) == 0);
    own = own * 7 + 1;
    total += own;
    pause_ms(1);
    MUST(pthread_mutex_unlock(&inheriting) == 0);
    MUST(pthread_mutex_unlock(&checked) == 0);
    MUST(gettid() == id);
    MUST(sched_getcpu() >= 0);
    char now[16];
    MUST(pthread_getname_np(pthread_self(), now, sizeof now) == 0 && strcmp(now, name) == 0);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return (void*)own;
}

/* Dies with the lock, which the next one must be told. */
static void* die_with_lock(void* argument) {
  (void)argument;
  MUST(pthread_mutex_lock(&robust) == 0);
  await_gate();
  return NULL;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checked, &attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&inheriting, &attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &attributes);
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  pthread_t threads[THREADS], dying;
  pthread_create(&dying, NULL, die_with_lock, NULL);
  for (unsigned long i = 0; i < THREADS; ++i)
    MUST(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (int i = 0; i < STEPS; ++i) {
    pthread_barrier_wait(&barrier);
    step(i, total);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < THREADS; ++i) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    printf("thread %d: %lu\n", i, (unsigned long)result);
  }
  MUST(pthread_mutex_lock(&robust) == EOWNERDEAD);
  MUST(pthread_mutex_consistent(&robust) == 0);
  MUST(pthread_join(dying, NULL) == 0);
  printf("the owner is dead\n");
  return DONE;
}
