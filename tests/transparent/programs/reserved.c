/* Memory of pages that the machine keeps in reserve (MAP_HUGETLB), of all kinds that there are. */
#include <sys/shm.h>

#include "step.h"

enum { MEMORIES = 4, PAGES = 2, PAGE_BYTES = 2 << 20, BYTES = PAGES * PAGE_BYTES };

static unsigned char* map(int kind, int file) {
  if (file < 0) kind |= MAP_ANONYMOUS | MAP_HUGETLB;
  unsigned char* memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, kind, file, 0);
  MUST(memory != MAP_FAILED);
  return memory;
}

int main(void) {
  const int file = memfd_create("reserved", MFD_HUGETLB);
  MUST(file >= 0 && ftruncate(file, BYTES) == 0);
  const int segment = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | SHM_HUGETLB | 0600);
  MUST(segment >= 0 || errno == EPERM); /* not every user may have one */
  unsigned char* const attached = segment < 0 ? map(MAP_PRIVATE, -1) : shmat(segment, NULL, 0);
  MUST(attached != (void*)-1);
  unsigned char* const memories[MEMORIES] = {map(MAP_PRIVATE, -1), map(MAP_SHARED, -1),
                                             map(MAP_SHARED, file), attached};
  for (int i = 0; i < STEPS; ++i) {
    unsigned long sum = 0;
    for (int k = 0; k < MEMORIES; ++k) {
      unsigned char* const at = memories[k] + (size_t)(i % PAGES) * PAGE_BYTES + (size_t)i * 64;
      MUST(i < PAGES || at[-PAGES * 64] == i - PAGES + k);
      *at = (unsigned char)(i + k);
      sum += *at;
    }
    step(i, sum);
  }
  MUST(munmap(memories[0], PAGE_BYTES) == 0);
  MUST(segment < 0 || shmctl(segment, IPC_RMID, NULL) == 0);
  return DONE;
}
