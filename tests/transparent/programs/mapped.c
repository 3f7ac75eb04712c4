/* Two processes that have mapped the same file for themselves, and of which each has written to
 * another page of it. */
#include <sys/stat.h>

#include "step.h"

enum { PAGE = 4096 };

static unsigned long sum_of(const volatile unsigned char* bytes, size_t length) {
  unsigned long sum = 0;
  for (size_t i = 0; i < length; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

struct Shared {
  unsigned long asked, answered, sum;
};

static void answer(struct Shared* shared, const unsigned char* mapped, size_t bytes) {
  for (unsigned long i = 1; i <= STEPS; ++i) {
    while (__atomic_load_n(&shared->asked, __ATOMIC_SEQ_CST) < i) pause_ms(1);
    shared->sum = sum_of(mapped, bytes);
    __atomic_store_n(&shared->answered, i, __ATOMIC_SEQ_CST);
  }
}

int main(int count, char** words) {
  MUST(count == 2);
  const int file = open(words[1], O_RDONLY);
  struct stat found;
  MUST(file >= 0 && fstat(file, &found) == 0 && found.st_size > 4 * PAGE &&
       found.st_size % PAGE != 0);
  const size_t bytes = (size_t)found.st_size;
  unsigned char* const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  struct Shared* const shared =
      mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(mapped != MAP_FAILED && shared != MAP_FAILED && close(file) == 0);
  mapped[PAGE] = 1;
  const pid_t child = fork();
  mapped[child == 0 ? 2 * PAGE : 3 * PAGE] = 2;
  if (child == 0) {
    answer(shared, mapped, bytes);
    _exit(3);
  }
  for (unsigned long i = 0; i < STEPS; ++i) {
    mapped[bytes - 1 - i] ^= 1; /* the last page: what is behind the end of the file is zero */
    __atomic_store_n(&shared->asked, i + 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->answered, __ATOMIC_SEQ_CST) <= i) pause_ms(1);
    step((int)i, shared->sum * 7 + sum_of(mapped, bytes) + mapped[bytes]);
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  return DONE;
}
