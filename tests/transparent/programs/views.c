/* Tests what is seen through something that is opened once and used for long: a directory that is
   being read, files that are mapped while they are written to, a pipe by two descriptions, an epoll
   set of two processes. */
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "step.h"

enum { FILES = 480, BYTES = 4096 };

static void make_files(void) {
  MUST(mkdir("many", 0700) == 0 || errno == EEXIST);
  for (int i = 0; i < FILES; ++i) {
    char name[32];
    snprintf(name, sizeof name, "many/f%05d", i);
    MUST(close(open(name, O_WRONLY | O_CREAT, 0600)) == 0);
  }
}

static void remove_files(void) {
  for (int i = 0; i < FILES; ++i) {
    char name[32];
    snprintf(name, sizeof name, "many/f%05d", i);
    MUST(unlink(name) == 0);
  }
  MUST(rmdir("many") == 0);
}

/* Returns how many more entries there are, of which few are read at a time. */
static int read_some(int directory) {
  char room[256];
  int entries = 0;
  const long got = syscall(SYS_getdents64, directory, room, sizeof room);
  MUST(got >= 0);
  for (long at = 0; at < got; ++entries) {
    unsigned short length = 0;
    memcpy(&length, room + at + 16, sizeof length); /* struct linux_dirent64: d_reclen */
    at += length;
  }
  return entries;
}

static int open_full(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  MUST(file >= 0 && ftruncate(file, BYTES) == 0);
  return file;
}

int main(void) {
  make_files();
  const int directory = open("many", O_RDONLY | O_DIRECTORY);
  int entries = 0;

  /* Read through a mapping, written by a call. */
  const int written = open_full("written"), only_read = open("written", O_RDONLY);
  const unsigned char* const seen = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, only_read, 0);
  MUST(seen != MAP_FAILED && close(only_read) == 0);

  /* Written through a mapping, and found by its name, which is an odd one. */
  const char* const odd = "odd\nname (deleted)";
  const int mapped = open_full(odd);
  unsigned char* const memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
  MUST(memory != MAP_FAILED && close(mapped) == 0);

  int ends[2];
  MUST(pipe(ends) == 0);
  char again[64];
  snprintf(again, sizeof again, "/proc/self/fd/%d", ends[0]);
  const int other = open(again, O_RDONLY | O_NONBLOCK);
  MUST(other >= 0);

  const int set = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN, .data = {.u32 = 77}};
  MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &wanted) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    for (;;) pause();
  }

  for (int i = 0; i < STEPS; ++i) {
    entries += read_some(directory);
    const unsigned char value = (unsigned char)(i + 1);
    MUST(pwrite(written, &value, 1, 5) == 1 && seen[5] == value);
    memory[9] = value;
    unsigned char found = 0;
    const int by_name = open(odd, O_RDONLY);
    MUST(pread(by_name, &found, 1, 9) == 1 && found == value && close(by_name) == 0);
    MUST((fcntl(ends[0], F_GETFL) & O_NONBLOCK) == 0 && (fcntl(other, F_GETFL) & O_NONBLOCK) != 0);
    struct epoll_event event = {0};
    MUST(epoll_wait(set, &event, 1, 0) == 0 && write(ends[1], &value, 1) == 1);
    MUST(epoll_wait(set, &event, 1, 0) == 1 && event.data.u32 == 77);
    MUST(read(i % 2 == 0 ? ends[0] : other, &found, 1) == 1 && found == value);
    step(i, 1);
  }
  for (int more = 1; more > 0; entries += more) more = read_some(directory);
  MUST(entries == FILES + 2); /* and . and .. */
  MUST(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  unlink("written");
  unlink(odd);
  remove_files();
  return DONE;
}
