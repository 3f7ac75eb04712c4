/* Open files: offsets, flags, descriptors that share them, files that have no name any more. */
#include <sys/stat.h>

#include "step.h"

int main(void) {
  char appended[] = "appended-XXXXXX", read_back[] = "read-XXXXXX", gone[] = "gone-XXXXXX";
  close(mkstemp(appended));
  const int to_end = open(appended, O_WRONLY | O_APPEND | O_CLOEXEC);
  const int lines = mkstemp(read_back);
  for (int i = 0; i < STEPS; ++i) dprintf(lines, "line %04d\n", i);
  MUST(lseek(lines, 0, SEEK_SET) == 0);
  const int same = dup(lines);
  const int other = open(read_back, O_RDONLY);
  const int nameless = mkstemp(gone);
  unlink(gone);
  const int null = open("/dev/null", O_RDWR);
  const int directory = open(".", O_RDONLY | O_DIRECTORY);
  const int only_path = open(read_back, O_PATH);
  MUST(mkdir("inner", 0700) == 0 && chdir("inner") == 0);
  umask(027);
  MUST(dup2(null, 200) == 200);
  for (int i = 0; i < STEPS; ++i) {
    char line[11] = "", again[11] = "";
    MUST(read(i % 2 == 0 ? lines : same, line, 10) == 10);
    MUST(read(other, again, 10) == 10 && strcmp(line, again) == 0);
    MUST(write(to_end, line, 10) == 10);
    MUST(pwrite(nameless, line, 10, i * 10) == 10);
    MUST(lseek(same, 0, SEEK_CUR) == (i + 1) * 10);
    struct stat found;
    MUST(fstat(to_end, &found) == 0 && fstat(nameless, &found) == 0 && fstat(only_path, &found) == 0);
    MUST(write(200, "x", 1) == 1);
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
  unlinkat(directory, appended, 0);
  unlinkat(directory, read_back, 0);
  unlinkat(directory, "inner", AT_REMOVEDIR);
  return DONE;
}
