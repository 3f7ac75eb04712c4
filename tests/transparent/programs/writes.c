/* All the ways in which memory changes between two checkpoints, as far as a page that was written
   may be overlooked. Each line has a sum over all of it. */
#include <sys/uio.h>

#include "step.h"

enum { PAGE = 4096, BYTES = (1 << 20) + 32 * PAGE };

static unsigned char* map_at(void* place, size_t bytes, int flags) {
  unsigned char* const memory =
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  MUST(memory != MAP_FAILED);
  return memory;
}

/* With a page behind it that nobody may touch: memory that touches other memory is stored together
 * with it. */
static unsigned char* arena(int flags) {
  unsigned char* const memory = map_at(NULL, BYTES + PAGE, flags);
  MUST(mprotect(memory + BYTES, PAGE, PROT_NONE) == 0);
  return memory;
}

/* Never zero, so that all of it is stored. */
static void fill(unsigned char* memory, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i)
    memory[i] = (unsigned char)(1 + (i * 7 + i / PAGE + seed) % 255);
}

static unsigned long sum_of(const unsigned char* memory, size_t bytes) {
  unsigned long sum = 0;
  for (size_t i = 0; i < bytes; i += sizeof sum) {
    unsigned long word = 0;
    memcpy(&word, memory + i, sizeof word);
    sum = sum * 31 + word;
  }
  return sum;
}

/* Writes to a page of the memory, another one at each step. */
static unsigned char* page(unsigned char* memory, int number) {
  return memory + (size_t)(number * 37 % (BYTES / PAGE)) * PAGE;
}

static void by_read(unsigned char* to, int number) {
  int ends[2];
  unsigned char bytes[600];
  fill(bytes, sizeof bytes, (unsigned)number * 3);
  MUST(pipe(ends) == 0 && write(ends[1], bytes, sizeof bytes) == sizeof bytes);
  MUST(read(ends[0], to, sizeof bytes) == sizeof bytes);
  close(ends[0]), close(ends[1]);
}

static void by_own_mem(unsigned char* to, int number) {
  const int file = open("/proc/self/mem", O_RDWR);
  const unsigned char byte = (unsigned char)(number + 1);
  MUST(file >= 0 && pwrite(file, &byte, 1, (off_t)(uintptr_t)to) == 1);
  close(file);
}

static void by_another_process(unsigned char* to, int number) {
  const pid_t child = fork();
  if (child == 0) {
    unsigned char byte = (unsigned char)(number + 5);
    struct iovec here = {&byte, 1}, there = {to, 1};
    _exit(process_vm_writev(getppid(), &here, 1, &there, 1, 0) == 1 ? 0 : 1);
  }
  int status = 1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
}

/* Puts other pages at the same addresses. */
static void by_new_mapping(unsigned char* memory, int number) {
  MUST(munmap(memory, BYTES) == 0);
  MUST(map_at(memory, BYTES, MAP_PRIVATE | MAP_FIXED_NOREPLACE) == memory);
  fill(memory, BYTES, (unsigned)number);
}

static void by_exchange(unsigned char* one, unsigned char* other) {
  unsigned char* const place = map_at(NULL, BYTES, MAP_PRIVATE);
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  MUST(mremap(one, BYTES, BYTES, flags, place) == place);
  MUST(mremap(other, BYTES, BYTES, flags, one) == one);
  MUST(mremap(place, BYTES, BYTES, flags, other) == other);
}

static void by_discarding(unsigned char* memory, int number) {
  MUST(madvise(page(memory, number), PAGE, MADV_DONTNEED) == 0);
  page(memory, number + 3)[9] = (unsigned char)number;
}

/* A child that was forked with the memory, and writes to its own copy of it. */
struct Child {
  int orders, answers;
};

static struct Child make_child(unsigned char* memory) {
  int orders[2], answers[2];
  MUST(pipe(orders) == 0 && pipe(answers) == 0);
  if (fork() == 0) {
    close(orders[1]), close(answers[0]);
    int number = 0;
    while (read(orders[0], &number, sizeof number) == sizeof number && number >= 0) {
      page(memory, number)[77] = (unsigned char)(number + 2);
      const unsigned long sum = sum_of(memory, BYTES);
      MUST(write(answers[1], &sum, sizeof sum) == sizeof sum);
    }
    _exit(0);
  }
  close(orders[0]), close(answers[1]);
  return (struct Child){orders[1], answers[0]};
}

static unsigned long ask(struct Child child, int number) {
  unsigned long sum = 0;
  MUST(write(child.orders, &number, sizeof number) == sizeof number);
  MUST(read(child.answers, &sum, sizeof sum) == sizeof sum);
  return sum;
}

int main(void) {
  enum { STORED, READ, OWN, ANOTHER, MAPPED, ONE, OTHER, DISCARDED, FORKED, KINDS };
  unsigned char* memory[KINDS];
  for (int i = 0; i < KINDS; ++i) {
    memory[i] = arena(MAP_PRIVATE);
    fill(memory[i], BYTES, (unsigned)i * 11);
  }
  unsigned char* const shared = arena(MAP_SHARED);
  fill(shared, BYTES, 5);
  size_t grown_bytes = PAGE;
  unsigned char* grown = map_at(NULL, grown_bytes, MAP_PRIVATE);
  fill(grown, grown_bytes, 3);
  struct Child child = make_child(memory[FORKED]);
  for (int i = 0; i < STEPS; ++i) {
    page(memory[STORED], i)[3] = (unsigned char)(i + 1);
    by_read(page(memory[READ], i), i);
    by_own_mem(page(memory[OWN], i), i);
    by_another_process(page(memory[ANOTHER], i), i);
    if (i % 3 == 1) by_new_mapping(memory[MAPPED], i);
    if (i % 3 == 2) by_exchange(memory[ONE], memory[OTHER]);
    page(memory[ONE], i)[100] = (unsigned char)(i + 9);
    by_discarding(memory[DISCARDED], i);
    page(shared, i)[8] = (unsigned char)(i + 4);
    grown = mremap(grown, grown_bytes, grown_bytes + PAGE, MREMAP_MAYMOVE);
    MUST(grown != MAP_FAILED);
    fill(grown + grown_bytes, PAGE, (unsigned)i);
    grown_bytes += PAGE;
    unsigned long sum = ask(child, i) + sum_of(shared, BYTES) + sum_of(grown, grown_bytes);
    for (int k = 0; k < KINDS; ++k) sum = sum * 17 + sum_of(memory[k], BYTES);
    if (i % 20 == 19) { /* a new process with the number of no other, of the memory as it is now */
      ask(child, i);
      const int end = -1;
      MUST(write(child.orders, &end, sizeof end) == sizeof end && wait(NULL) > 0);
      close(child.orders), close(child.answers);
      child = make_child(memory[FORKED]);
    }
    step(i, sum);
  }
  return DONE;
}
