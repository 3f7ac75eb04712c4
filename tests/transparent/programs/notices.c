/* Descriptors that tell of files, processes and times, that send signals, that keep packets, and
 * that are sealed. */
#include <poll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "step.h"

static volatile sig_atomic_t told_of;

static void be_told(int number, siginfo_t* info, void* nothing) {
  (void)number, (void)nothing;
  told_of = info->si_fd;
}

static void must_tell(int notices, int watch, uint32_t mask, const char* name) {
  char room[4096] __attribute__((aligned(8)));
  MUST(read(notices, room, sizeof room) > 0);
  const struct inotify_event* const event = (void*)room;
  MUST(event->wd == watch && (event->mask & mask) != 0 &&
       (name == NULL || strcmp(event->name, name) == 0));
}

int main(void) {
  mkdir("watched", 0700);
  unlink("watched/new");
  const int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int notices = inotify_init1(IN_NONBLOCK);
  const int first = inotify_add_watch(notices, ".", IN_DELETE_SELF),
            watch = inotify_add_watch(notices, "watched", IN_CREATE);
  const int other = inotify_add_watch(notices, "file", IN_MODIFY);
  MUST(inotify_rm_watch(notices, first) == 0 && watch > 0 && other > 0);
  must_tell(notices, first, IN_IGNORED, NULL);

  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    await_gate();
    pause_ms(50);
    _exit(3);
  }
  const int process = (int)syscall(SYS_pidfd_open, child, 0);
  MUST(process >= 0);

  const int timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
  const struct itimerspec soon = {{1000, 0}, {0, 1}};
  MUST(timerfd_settime(timer, 0, &soon, NULL) == 0);

  int ends[2], packets[2];
  MUST(pipe(ends) == 0 && pipe2(packets, O_DIRECT) == 0);
  struct sigaction action = {.sa_sigaction = be_told, .sa_flags = SA_SIGINFO | SA_RESTART};
  MUST(sigaction(SIGRTMIN + 3, &action, NULL) == 0);
  MUST(fcntl(ends[0], F_SETOWN, getpid()) == 0 && fcntl(ends[0], F_SETSIG, SIGRTMIN + 3) == 0);
  MUST(fcntl(ends[0], F_SETFL, O_ASYNC) == 0);
  MUST(write(packets[1], "one", 3) == 3 && write(packets[1], "three", 5) == 5);

  const int sealed = memfd_create("sealed", MFD_ALLOW_SEALING);
  MUST(write(sealed, "kept", 4) == 4 &&
       fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW) == 0);

  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);

  struct pollfd asked = {process, POLLIN, 0};
  MUST(poll(&asked, 1, 10000) == 1);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  close(creat("watched/new", 0600));
  must_tell(notices, watch, IN_CREATE, "new");
  MUST(write(file, "x", 1) == 1);
  must_tell(notices, other, IN_MODIFY, NULL);
  uint64_t count = 0;
  MUST(read(timer, &count, sizeof count) == sizeof count && count == 1);
  MUST(write(ends[1], "x", 1) == 1);
  for (int i = 0; i < 1000 && told_of == 0; ++i) usleep(1000);
  MUST(told_of == ends[0]);
  char text[20];
  MUST(read(packets[0], text, sizeof text) == 3 && read(packets[0], text, sizeof text) == 5);
  MUST(fcntl(sealed, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_GROW) && write(sealed, "x", 1) == -1 &&
       errno == EPERM);
  MUST(pread(sealed, text, sizeof text, 0) == 4 && memcmp(text, "kept", 4) == 0);
  printf("all told\n");
  return DONE;
}
