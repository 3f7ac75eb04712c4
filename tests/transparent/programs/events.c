/* Descriptors without a file: counters, timers, signals, sets that are watched. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "step.h"

int main(void) {
  const int counter = eventfd(7, 0);
  const int semaphore = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec once = {{0, 0}, {0, 700000000}};
  MUST(timerfd_settime(timer, 0, &once, NULL) == 0);
  /* Has expired long before anybody reads that, and must go on to expire. */
  const int beat = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
  MUST(timerfd_settime(beat, 0, &often, NULL) == 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, 0);
  raise(SIGUSR1);
  const int inner = epoll_create1(0), outer = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {EPOLLIN, {.u64 = 11}};
  MUST(epoll_ctl(inner, EPOLL_CTL_ADD, timer, &event) == 0);
  event.data.u64 = 22;
  MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) == 0);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i * 2);
  uint64_t value = 0;
  MUST(read(counter, &value, sizeof value) == sizeof value && value == 7);
  for (int i = 0; i < 3; ++i)
    MUST(read(semaphore, &value, sizeof value) == sizeof value && value == 1);
  MUST(read(semaphore, &value, sizeof value) == -1 && errno == EAGAIN);
  MUST(epoll_wait(outer, &event, 1, 5000) == 1 && event.data.u64 == 22);
  MUST(epoll_wait(inner, &event, 1, 5000) == 1 && event.data.u64 == 11);
  MUST(read(timer, &value, sizeof value) == sizeof value && value == 1);
  MUST(epoll_ctl(inner, EPOLL_CTL_DEL, timer, NULL) == 0);
  for (int i = 0; i < 3; ++i) {
    struct pollfd asked = {beat, POLLIN, 0};
    MUST(poll(&asked, 1, 5000) == 1 && read(beat, &value, sizeof value) == sizeof value);
  }
  struct signalfd_siginfo got;
  MUST(read(signals, &got, sizeof got) == sizeof got && got.ssi_signo == SIGUSR1);
  printf("all came\n");
  return DONE;
}
