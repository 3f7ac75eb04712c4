/* Large files on a disk that take hardly any room there: mapped with a name, mapped without one,
 * without a name and not mapped, and open for writing. A checkpoint must not store their holes, and
 * a restart leaves empty what was empty. */
#include <sys/stat.h>

#include "step.h"

enum { FILES = 4, MAPPED = 2, APART = 1 << 19, MOST_BYTES = 16 << 20 };
static const off_t kBytes[FILES] = {(off_t)1 << 30, (off_t)1 << 30, (off_t)1 << 30, 40 << 20};

static void must_be_small(int file, off_t bytes) {
  struct stat found;
  MUST(fstat(file, &found) == 0);
  MUST(found.st_size == bytes);
  MUST(found.st_blocks * 512 < MOST_BYTES);
}

static int make(const char* name, off_t bytes) {
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  MUST(file >= 0 && ftruncate(file, bytes) == 0);
  return file;
}

int main(void) {
  static const char* const kNames[FILES] = {"named", "mapped", "unmapped", "open"};
  int files[FILES];
  char* memories[MAPPED];
  for (int k = 0; k < FILES; ++k) files[k] = make(kNames[k], kBytes[k]);
  for (int k = 0; k < MAPPED; ++k) {
    memories[k] = mmap(NULL, kBytes[k], PROT_READ | PROT_WRITE, MAP_SHARED, files[k], 0);
    MUST(memories[k] != MAP_FAILED);
  }
  MUST(close(files[0]) == 0 && unlink("mapped") == 0 && unlink("unmapped") == 0);
  for (int i = 0; i < STEPS; ++i) {
    const off_t at = (off_t)(i + 1) * APART, next = at + APART;
    unsigned long sum = 0;
    for (int k = 0; k < FILES; ++k) {
      char byte = (char)(i + k), read = 0;
      if (k < MAPPED) {
        MUST(memories[k][next] == 0); /* also if the next step was done before a restart */
        memories[k][at] = byte;
        read = memories[k][at - (i > 0 ? APART : 0)];
      } else {
        MUST(pread(files[k], &read, 1, next) == 1 && read == 0);
        MUST(pwrite(files[k], &byte, 1, at) == 1);
        MUST(pread(files[k], &read, 1, at - (i > 0 ? APART : 0)) == 1);
      }
      sum += (unsigned char)read;
    }
    step(i, sum);
    const int named = open("named", O_RDONLY);
    MUST(named >= 0);
    must_be_small(named, kBytes[0]);
    MUST(close(named) == 0);
    for (int k = 1; k < FILES; ++k) must_be_small(files[k], kBytes[k]);
  }
  return DONE;
}
