/* Sessions and process groups whose first processes have ended, and children of parents that have
 * ended. */
#include "step.h"

enum { FAMILIES = 3 };

static int news[2];

/* Tells main who it is, and waits to be killed. */
static void wait_for_end(void) {
  const pid_t self = getpid();
  MUST(write(news[1], &self, sizeof self) == sizeof self);
  for (;;) pause();
}

/* A daemon: the process that began its session has ended. */
static void begin_session_and_end(void) {
  MUST(setsid() == getpid());
  if (fork() == 0) wait_for_end();
  _exit(0);
}

/* The process that began its group has ended. */
static void begin_group_and_end(void) {
  MUST(setpgid(0, 0) == 0);
  if (fork() == 0) wait_for_end();
  _exit(0);
}

/* The parent has ended, and the process that began the session has not. */
static void begin_session_and_stay(void) {
  MUST(setsid() == getpid());
  const pid_t between = fork();
  if (between == 0) {
    if (fork() == 0) wait_for_end();
    _exit(0);
  }
  MUST(waitpid(between, NULL, 0) == between);
  for (;;) pause();
}

static pid_t parent_of(pid_t process) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY);
  const ssize_t got = read(file, text, sizeof text - 1);
  MUST(got > 0 && close(file) == 0);
  text[got] = '\0';
  int parent = 0;
  MUST(sscanf(strrchr(text, ')'), ") %*c %d", &parent) == 1);
  return parent;
}

int main(void) {
  void (*const begin[FAMILIES])(void) = {begin_session_and_end, begin_group_and_end,
                                         begin_session_and_stay};
  pid_t first[FAMILIES], member[FAMILIES];
  MUST(pipe(news) == 0);
  for (int i = 0; i < FAMILIES; ++i) {
    first[i] = fork();
    if (first[i] == 0) begin[i]();
    if (i < 2) MUST(waitpid(first[i], NULL, 0) == first[i]);
    MUST(read(news[0], &member[i], sizeof member[i]) == sizeof member[i]);
  }
  /* Orphans have gone to another parent once theirs has ended, which may be a moment later. */
  const pid_t reaper = parent_of(member[0]);
  while (parent_of(member[2]) != reaper || parent_of(member[1]) != reaper) pause_ms(1);
  for (int i = 0; i < STEPS; ++i) {
    MUST(getsid(member[0]) == first[0] && getpgid(member[0]) == first[0]);
    MUST(getsid(member[1]) == getsid(0) && getpgid(member[1]) == first[1]);
    MUST(getsid(member[2]) == first[2] && getpgid(member[2]) == first[2] &&
         getsid(first[2]) == first[2]);
    /* One child is left, and no other process has become one. */
    MUST(waitpid(-1, NULL, WNOHANG) == 0);
    step(i, 1);
  }
  for (int i = 0; i < FAMILIES; ++i)
    MUST(parent_of(member[i]) == reaper && kill(member[i], SIGKILL) == 0);
  MUST(kill(first[2], SIGKILL) == 0 && waitpid(first[2], NULL, 0) == first[2]);
  return DONE;
}
