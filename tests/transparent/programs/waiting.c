/* Calls that are under way: they end when they were to end, and nobody sees EINTR. */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "step.h"

static int quiet[2]; /* a pipe into which nobody writes until the end */

/* A call that is to last a second must not be seen to last much longer than that. */
static void check_length(const char* what, uint64_t begin_ms) {
  const uint64_t took_ms = now_ms() - begin_ms;
  MUST(took_ms >= 990);
  printf("%s waited\n", what);
  fflush(stdout);
}

static void* sleep_by_clock(void* unused) {
  (void)unused;
  const uint64_t begin_ms = now_ms();
  const struct timespec length = {1, 0};
  MUST(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) == 0);
  MUST(now_ms() - begin_ms >= 990);
  return NULL;
}

static void* sleep_in_poll(void* unused) {
  (void)unused;
  struct pollfd asked = {quiet[0], POLLIN, 0};
  MUST(poll(&asked, 1, 1000) == 0);
  return NULL;
}

static void* sleep_in_select(void* unused) {
  (void)unused;
  struct timeval length = {1, 0};
  MUST(select(0, NULL, NULL, NULL, &length) == 0);
  return NULL;
}

static void* sleep_in_epoll(void* unused) {
  (void)unused;
  const int set = epoll_create1(0);
  struct epoll_event event = {EPOLLIN, {0}};
  MUST(epoll_ctl(set, EPOLL_CTL_ADD, quiet[0], &event) == 0);
  MUST(epoll_wait(set, &event, 1, 1000) == 0);
  return NULL;
}

static void* sleep_in_futex(void* unused) {
  (void)unused;
  static int word = 5;
  const struct timespec length = {1, 0};
  MUST(syscall(SYS_futex, &word, FUTEX_WAIT, 5, &length, NULL, 0) == -1 && errno == ETIMEDOUT);
  return NULL;
}

static void* wait_for_signal(void* unused) {
  (void)unused;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  const struct timespec length = {1, 0};
  MUST(sigtimedwait(&set, NULL, &length) == -1 && errno == EAGAIN);
  return NULL;
}

static void* read_pipe(void* unused) {
  (void)unused;
  char byte = 0;
  MUST(read(quiet[0], &byte, 1) == 1 && byte == 'x');
  return NULL;
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  MUST(pipe(quiet) == 0);
  void* (*const kinds[])(void*) = {sleep_by_clock, sleep_in_poll,   sleep_in_select, sleep_in_epoll,
                                   sleep_in_futex, wait_for_signal, read_pipe};
  enum { KINDS = sizeof kinds / sizeof kinds[0] };
  pthread_t threads[KINDS];
  const uint64_t begin_ms = now_ms();
  printf("all wait\n");
  fflush(stdout);
  for (int i = 0; i < KINDS; ++i) MUST(pthread_create(&threads[i], NULL, kinds[i], NULL) == 0);
  for (int i = 0; i < KINDS - 1; ++i) MUST(pthread_join(threads[i], NULL) == 0);
  check_length("everybody", begin_ms);
  await_gate();
  MUST(write(quiet[1], "x", 1) == 1);
  MUST(pthread_join(threads[KINDS - 1], NULL) == 0);
  printf("the reader has read\n");
  return DONE;
}
