/* Much memory, and all that can be done to it at once after a restart: it is read by the kernel and
   into by the kernel, forked, moved, made longer, discarded and unmapped. */
#include "step.h"

enum { PIECE = 16 << 20, PIECES = 8 };

static unsigned long value_at(size_t word) { return word * 0x9e3779b97f4a7c15ul + 1; }

static unsigned long* filled(size_t from) {
  unsigned long* const memory =
      mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED);
  for (size_t i = 0; i < PIECE / sizeof *memory; ++i) memory[i] = value_at(from + i);
  return memory;
}

static int is_filled(const unsigned long* memory, size_t bytes, size_t from) {
  for (size_t i = 0; i < bytes / sizeof *memory; ++i)
    if (memory[i] != value_at(from + i)) return 0;
  return 1;
}

/* From the far end of the memory to a pipe and back, by the kernel. */
static int goes_through_pipe(unsigned long* memory) {
  int ends[2];
  MUST(pipe(ends) == 0);
  char* const last = (char*)memory + PIECE - 4096;
  char* const middle = (char*)memory + PIECE / 2;
  MUST(write(ends[1], last, 2048) == 2048 && read(ends[0], middle, 2048) == 2048);
  return memcmp(last, middle, 2048) == 0;
}

static void say(const char* what, int is_right) {
  printf("%s %s\n", what, is_right ? "right" : "wrong");
  fflush(stdout);
}

int main(void) {
  unsigned long* memory[PIECES];
  for (int i = 0; i < PIECES; ++i) memory[i] = filled((size_t)i * PIECE);
  for (int i = 0; i < STEPS; ++i) step(i, memory[0][i]);

  const pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    int is_right = 1;
    for (int i = PIECES - 1; i >= 0; --i)
      is_right = is_right && is_filled(memory[i], PIECE, (size_t)i * PIECE);
    _exit(is_right ? 0 : 1);
  }
  memory[1][7] = 7; /* the child must not see it */
  MUST(madvise((char*)memory[2] + PIECE / 2, PIECE / 2, MADV_DONTNEED) == 0);
  char* const moved = mremap(memory[3], PIECE, 2 * PIECE, MREMAP_MAYMOVE);
  MUST(moved != MAP_FAILED);
  MUST(munmap((char*)memory[4] + PIECE / 2, PIECE / 2) == 0);
  MUST(mprotect((char*)memory[5] + PIECE / 4, PIECE / 4, PROT_READ) == 0);
  say("through a pipe", goes_through_pipe(memory[6]));
  unsigned long* const anew = mmap((char*)memory[4] + PIECE / 2, PIECE / 2, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  MUST(anew != MAP_FAILED);
  int is_zero = 1;
  for (size_t i = 0; i < PIECE / 2 / sizeof(long); ++i)
    is_zero = is_zero && anew[i] == 0 && memory[2][PIECE / 2 / sizeof(long) + i] == 0;
  for (size_t i = 0; i < PIECE; ++i) is_zero = is_zero && moved[PIECE + i] == 0;
  say("discarded, unmapped and new", is_zero);
  say("moved", is_filled((unsigned long*)moved, PIECE, 3ul * PIECE));
  say("kept", is_filled(memory[2], PIECE / 2, 2ul * PIECE) &&
                  is_filled(memory[4], PIECE / 2, 4ul * PIECE) &&
                  is_filled(memory[5], PIECE, 5ul * PIECE) &&
                  is_filled(memory[7], PIECE, 7ul * PIECE) && memory[1][7] == 7);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child);
  say("forked", status == 0);
  return DONE;
}
