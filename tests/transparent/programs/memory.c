/* Mappings of all kinds. */
#include <sys/stat.h>

#include "step.h"

enum { PAGE = 4096, GUARD_INSTALL = 102 };

static unsigned long sum_of(const unsigned char* bytes, size_t length) {
  unsigned long sum = 0;
  for (size_t i = 0; i < length; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

/* Pages of which the first and the fourth are guarded, by the kernel's own means if it has them. */
static unsigned char* with_guards(void) {
  unsigned char* const pages =
      mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(pages, 'g', 6 * PAGE);
  for (int i = 0; i < 6; i += 3) {
    unsigned char* const page = pages + i * PAGE;
    if (madvise(page, PAGE, GUARD_INSTALL) != 0) MUST(mprotect(page, PAGE, PROT_NONE) == 0);
  }
  return pages;
}

static int can_be_read(const unsigned char* page) {
  int ends[2];
  MUST(pipe(ends) == 0);
  const int is_readable = write(ends[1], page, 1) == 1;
  MUST(is_readable || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return is_readable;
}

int main(void) {
  char name[] = "mapped-XXXXXX";
  const int file = mkstemp(name);
  unsigned char page[PAGE];
  for (int i = 0; i < 5; ++i) {
    memset(page, 'a' + i, PAGE);
    MUST(write(file, page, PAGE) == PAGE);
  }
  unsigned char* const private = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  memset(private + PAGE, 'x', 100); /* three pages lie behind the end of the file */
  unsigned char* const shared =
      mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, PAGE);
  unlink(name); /* replaced and deleted: the contents must not come from there */
  const int memory = memfd_create("memory", 0);
  MUST(ftruncate(memory, 16 * PAGE) == 0);
  unsigned char* const of_memory =
      mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  unsigned char* const guarded =
      mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  strcpy((char*)guarded, "behind the guard");
  MUST(mprotect(guarded, PAGE, PROT_NONE) == 0);
  unsigned char* const large =
      mmap(NULL, (size_t)1 << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MUST(large != MAP_FAILED);
  MUST(madvise(guarded + 2 * PAGE, PAGE, MADV_DONTFORK) == 0);
  unsigned char* const pages = with_guards();
  printf("begin\n"); /* the library takes what it needs of the heap before */
  unsigned char* const top = sbrk(0);
  unsigned char* const heap = sbrk(10 * PAGE);
  MUST(heap == top);
  void* const end_of_heap = sbrk(0);
  MUST(end_of_heap == heap + 10 * PAGE);
  fflush(stdout);
  unsigned long* const together =
      mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < STEPS; ++i) {
      while (__atomic_load_n(&together[0], __ATOMIC_SEQ_CST) <= (unsigned long)i) pause_ms(1);
      together[1] = together[0] * 3;
      of_memory[i] = (unsigned char)(i * 3);
      __atomic_store_n(&together[2], (unsigned long)i + 1, __ATOMIC_SEQ_CST);
    }
    _exit(3);
  }
  for (int i = 0; i < STEPS; ++i) {
    __atomic_store_n(&together[0], (unsigned long)i + 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&together[2], __ATOMIC_SEQ_CST) <= (unsigned long)i) pause_ms(1);
    MUST(together[1] == ((unsigned long)i + 1) * 3);
    heap[i * 500] = (unsigned char)i;
    shared[i * 7] = (unsigned char)i;
    private[2 * PAGE + i] = (unsigned char)(i + 1);
    MUST(of_memory[i] == (unsigned char)(i * 3));
    unsigned char by_descriptor = 0;
    MUST(pread(memory, &by_descriptor, 1, i) == 1 && by_descriptor == of_memory[i]);
    for (int k = 0; k < 6; ++k) MUST(can_be_read(pages + k * PAGE) == (k % 3 != 0));
    step(i, sum_of(private, 5 * PAGE) + sum_of(shared, 4 * PAGE) + sum_of(heap, 10 * PAGE) +
                sum_of(of_memory, 16 * PAGE));
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  MUST(mprotect(guarded, PAGE, PROT_READ) == 0);
  printf("%s\n", guarded);
  printf("%lu %lu\n", sum_of(pages + PAGE, 2 * PAGE), sum_of(pages + 4 * PAGE, 2 * PAGE));
  MUST(sbrk(0) == end_of_heap);
  struct stat found;
  MUST(fstat(file, &found) == 0 && found.st_size == 5 * PAGE);
  return DONE;
}
