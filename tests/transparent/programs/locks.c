/* Locks on files: of a process, of an open file description, and of flock. */
#include <sys/file.h>

#include "step.h"

static int open_file(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT, 0600);
  MUST(file >= 0);
  return file;
}

static void lock(int file, int command, short type, off_t begin, off_t bytes) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = begin, .l_len = bytes};
  MUST(fcntl(file, command, &range) == 0);
}

/* Returns what somebody else who wants to write there would be told: the lock that is in the way.
 */
static struct flock lock_at(int file, off_t begin) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = begin, .l_len = 1};
  MUST(fcntl(file, F_OFD_GETLK, &range) == 0);
  return range;
}

int main(void) {
  /* Each file is open twice: a lock is no obstacle to the description that has it. */
  const int by_process = open_file("by-process"), by_description = open_file("by-description"),
            whole = open_file("whole");
  const int process_seen = open_file("by-process"), description_seen = open_file("by-description");
  const int whole_seen = open_file("whole");
  lock(by_process, F_SETLK, F_WRLCK, 5, 10);
  lock(by_description, F_OFD_SETLK, F_RDLCK, 7, 0);
  MUST(flock(whole, LOCK_EX) == 0);
  const int same = dup(whole);
  int ready[2];
  MUST(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    lock(by_process, F_SETLK, F_WRLCK, 100, 10);
    MUST(write(ready[1], "", 1) == 1);
    for (;;) pause();
  }
  char byte = 0;
  MUST(read(ready[0], &byte, 1) == 1);
  for (int i = 0; i < STEPS; ++i) {
    struct flock seen = lock_at(process_seen, 14);
    MUST(seen.l_type == F_WRLCK && seen.l_pid == getpid() && seen.l_start == 5 && seen.l_len == 10);
    seen = lock_at(process_seen, 109);
    MUST(seen.l_type == F_WRLCK && seen.l_pid == child && seen.l_start == 100 && seen.l_len == 10);
    MUST(lock_at(process_seen, 15).l_type == F_UNLCK);
    seen = lock_at(description_seen, 1 << 20);
    MUST(seen.l_type == F_RDLCK && seen.l_start == 7 && seen.l_len == 0);
    MUST(flock(whole_seen, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    step(i, 1);
  }
  MUST(flock(same, LOCK_UN) == 0 && flock(whole_seen, LOCK_EX | LOCK_NB) == 0);
  MUST(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  unlink("by-process");
  unlink("by-description");
  unlink("whole");
  return DONE;
}
