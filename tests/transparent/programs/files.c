/* Open files: offsets, flags, descriptors that share them, what they hold, files that have no name
 * any more. */
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "step.h"

/* A number that is written over itself, as databases do with their pages: what it is must be what
 * the program has made it. */
static int counter = -1;

static void count(int step) {
  int found = -1;
  MUST(pread(counter, &found, sizeof found, 0) == sizeof found && found == step);
  ++found;
  MUST(pwrite(counter, &found, sizeof found, 0) == sizeof found);
}

/* A file that is there for some steps only, as a journal is. */
static int journal = -1;

static void keep_journal(int step) {
  if (step % 8 == 2) {
    journal = open("journal", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(journal >= 0);
  }
  if (journal < 0) return;
  int entry = step, found = -1;
  MUST(write(journal, &entry, sizeof entry) == sizeof entry);
  MUST(pread(journal, &found, sizeof found, 0) == sizeof found && found == step / 8 * 8 + 2);
  if (step % 8 != 6) return;
  struct stat by_name;
  MUST(stat("journal", &by_name) == 0 && by_name.st_size == 5 * (off_t)sizeof entry);
  MUST(unlink("journal") == 0);
  close(journal);
  journal = -1;
}

/* Files that their owner may open no more, as their modes say: one that was made so, and one that
 * is mapped. */
static int forbidden, hidden;
static char* of_hidden;

static void make_forbidden(void) {
  unlink("forbidden"), unlink("hidden");
  forbidden = open("forbidden", O_WRONLY | O_CREAT | O_EXCL, 0);
  hidden = open("hidden", O_RDWR | O_CREAT | O_EXCL, 0600);
  MUST(forbidden >= 0 && hidden >= 0 && ftruncate(hidden, 4096) == 0);
  of_hidden = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, hidden, 0);
  MUST(of_hidden != MAP_FAILED && fchmod(hidden, 0444) == 0);
}

static void must_be_forbidden(int directory) {
  struct stat found;
  MUST(fstat(forbidden, &found) == 0 && found.st_size == STEPS && (found.st_mode & 07777) == 0);
  MUST(fstat(hidden, &found) == 0 && (found.st_mode & 07777) == 0444);
  char byte = 0;
  MUST(pread(hidden, &byte, 1, STEPS - 1) == 1 && byte == (char)STEPS);
  MUST(unlinkat(directory, "forbidden", 0) == 0 && unlinkat(directory, "hidden", 0) == 0);
}

/* Returns -1 where there can be none, and in memory, where it is restored as other memory is. */
static int make_without_name(void) {
  struct statfs here;
  MUST(statfs(".", &here) == 0);
  return here.f_type == TMPFS_MAGIC ? -1 : open(".", O_TMPFILE | O_RDWR, 0640);
}

/* A file that never had a name gets one at last. */
static void name_at_last(int file, int directory) {
  char path[64], line[11] = "";
  struct stat found;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  MUST(fstat(file, &found) == 0 && (found.st_mode & 07777) == 0640);
  MUST(linkat(AT_FDCWD, path, directory, "named at last", AT_SYMLINK_FOLLOW) == 0);
  const int by_name = openat(directory, "named at last", O_RDONLY);
  MUST(pread(by_name, line, 10, (STEPS - 1) * 10) == 10 && atoi(line + 5) == STEPS - 1);
  MUST(close(by_name) == 0 && unlinkat(directory, "named at last", 0) == 0);
}

/* A descriptor with one of the last numbers that there are, where some tools put theirs. */
static int use_a_last_number(int file) {
  struct rlimit limit;
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
  MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return fcntl(file, F_DUPFD, limit.rlim_cur - 2);
}

/* Files of /proc that stay open, as tools have them that look at the machine again and again. */
static int of_process, of_thread, of_machine;

static void open_files_of_proc(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)getpid());
  of_process = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  of_thread = open(path, O_RDWR);
  of_machine = open("/proc/loadavg", O_RDONLY);
  MUST(of_process >= 0 && of_thread >= 0 && of_machine >= 0);
}

static void read_files_of_proc(void) {
  char text[64] = "";
  double load = -1;
  MUST(pread(of_process, text, sizeof text - 1, 0) > 0 && atoi(text) == (int)getpid());
  memset(text, 0, sizeof text);
  MUST(write(of_thread, "renamed", 7) == 7);
  MUST(pread(of_thread, text, sizeof text - 1, 0) > 0 && strcmp(text, "renamed\n") == 0);
  MUST(pread(of_machine, text, sizeof text - 1, 0) > 0 && sscanf(text, "%lf", &load) == 1);
  MUST(load >= 0 && (fcntl(of_process, F_GETFD) & FD_CLOEXEC) != 0);
}

int main(void) {
  char appended[] = "appended-XXXXXX", read_back[] = "read-XXXXXX", gone[] = "gone-XXXXXX";
  close(mkstemp(appended));
  const int to_end = open(appended, O_WRONLY | O_APPEND | O_CLOEXEC);
  const int lines = mkstemp(read_back);
  char counted[] = "counted-XXXXXX";
  counter = mkstemp(counted);
  MUST(write(counter, &(int){0}, sizeof(int)) == sizeof(int));
  for (int i = 0; i < STEPS; ++i) dprintf(lines, "line %04d\n", i);
  MUST(lseek(lines, 0, SEEK_SET) == 0);
  const int same = dup(lines);
  const int other = open(read_back, O_RDONLY);
  const int nameless = mkstemp(gone);
  unlink(gone);
  const int never_named = make_without_name();
  make_forbidden();
  const int null = open("/dev/null", O_RDWR);
  const int directory = open(".", O_RDONLY | O_DIRECTORY);
  const int only_path = open(read_back, O_PATH);
  MUST(mkdir("inner", 0700) == 0 && chdir("inner") == 0);
  umask(027);
  MUST(dup2(null, 200) == 200);
  const int last = use_a_last_number(null);
  open_files_of_proc();
  for (int i = 0; i < STEPS; ++i) {
    char line[11] = "", again[11] = "";
    MUST(read(i % 2 == 0 ? lines : same, line, 10) == 10);
    MUST(read(other, again, 10) == 10 && strcmp(line, again) == 0);
    MUST(write(to_end, line, 10) == 10);
    MUST(pwrite(nameless, line, 10, i * 10) == 10);
    if (never_named >= 0) MUST(pwrite(never_named, line, 10, i * 10) == 10);
    MUST(lseek(same, 0, SEEK_CUR) == (i + 1) * 10);
    struct stat found;
    MUST(fstat(to_end, &found) == 0 && fstat(nameless, &found) == 0 &&
         fstat(only_path, &found) == 0);
    MUST(write(200, "x", 1) == 1 && write(last, "x", 1) == 1 && write(forbidden, "x", 1) == 1);
    of_hidden[i] = (char)(i + 1);
    count(i);
    keep_journal(i);
    read_files_of_proc();
    MUST(faccessat(directory, read_back, R_OK, 0) == 0);
    step(i, (unsigned long)atoi(line + 5));
  }
  MUST((fcntl(to_end, F_GETFL) & O_APPEND) != 0 && (fcntl(to_end, F_GETFD) & FD_CLOEXEC) != 0);
  MUST((fcntl(lines, F_GETFD) & FD_CLOEXEC) == 0);
  char line[11] = "";
  MUST(pread(nameless, line, 10, (STEPS - 1) * 10) == 10 && atoi(line + 5) == STEPS - 1);
  char where[4096];
  MUST(getcwd(where, sizeof where) != NULL && strcmp(strrchr(where, '/'), "/inner") == 0);
  MUST(umask(0) == 027);
  struct stat found;
  MUST(fstat(to_end, &found) == 0);
  printf("%ld bytes\n", (long)found.st_size);
  must_be_forbidden(directory);
  if (never_named >= 0) name_at_last(never_named, directory);
  unlinkat(directory, appended, 0);
  unlinkat(directory, read_back, 0);
  unlinkat(directory, counted, 0);
  MUST(unlink("journal") == 0);
  unlinkat(directory, "inner", AT_REMOVEDIR);
  return DONE;
}
