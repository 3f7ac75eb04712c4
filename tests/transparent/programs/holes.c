/* Large memories of all kinds that processes share, of which hardly any page is there. A checkpoint
 * must not give them pages, and a restart leaves empty what was empty. */
#include <sys/shm.h>
#include <sys/stat.h>

#include "step.h"

enum { MEMORIES = 4, APART = 1 << 24, MOST_BYTES = 64 << 20 };
static const size_t kBytes = (size_t)2 << 30;

/* A file of memory, which takes as much as it has pages. */
static void must_be_small(int file) {
  struct stat found;
  MUST(fstat(file, &found) == 0);
  MUST((size_t)found.st_size == kBytes);
  MUST(found.st_blocks * 512 < MOST_BYTES);
}

static char* map(int file) {
  const int kind = MAP_SHARED | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0);
  char* memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, kind, file, 0);
  MUST(memory != MAP_FAILED);
  return memory;
}

static char* attach(int segment) {
  char* memory = shmat(segment, NULL, 0);
  MUST(memory != (char*)-1);
  return memory;
}

/* Segments that are there and whose pages take no memory. */
static void must_be_few_pages(void) {
  struct shm_info found;
  MUST(shmctl(0, SHM_INFO, (struct shmid_ds*)&found) >= 0);
  MUST(found.shm_rss * 4096 < MOST_BYTES);
}

int main(void) {
  char name[64], byte = 0;
  snprintf(name, sizeof name, "/dev/shm/diapause-holes-%d", getpid());
  const int with_name = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  const int mapped = memfd_create("mapped", 0), unmapped = memfd_create("unmapped", 0);
  const int files[] = {with_name, mapped, unmapped};
  for (int i = 0; i < 3; ++i) MUST(files[i] >= 0 && ftruncate(files[i], (off_t)kBytes) == 0);
  const int attached = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | SHM_NORESERVE | 0600);
  const int detached = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | SHM_NORESERVE | 0600);
  MUST(attached >= 0 && detached >= 0);
  char* const memories[MEMORIES] = {map(-1), map(with_name), map(mapped), attach(attached)};
  for (int i = 0; i < STEPS; ++i) {
    const size_t at = (size_t)(i + 1) * APART, next = at + APART;
    unsigned long sum = 0;
    for (int k = 0; k < MEMORIES; ++k) {
      MUST(memories[k][next] == 0); /* also if the next step was done before a restart */
      memories[k][at] = (char)(i + k);
      sum += (unsigned char)memories[k][at - (i > 0 ? APART : 0)];
    }
    char* const segment = attach(detached);
    MUST(segment[next] == 0);
    segment[at] = (char)i;
    MUST(shmdt(segment) == 0);
    MUST(pread(unmapped, &byte, 1, (off_t)next) == 1 && byte == 0);
    MUST(pwrite(unmapped, "x", 1, (off_t)at) == 1);
    step(i, sum);
    for (int k = 0; k < 3; ++k) must_be_small(files[k]);
    must_be_few_pages();
  }
  MUST(unlink(name) == 0);
  MUST(shmctl(attached, IPC_RMID, NULL) == 0 && shmctl(detached, IPC_RMID, NULL) == 0);
  return DONE;
}
