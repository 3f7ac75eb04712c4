/* The memory of this program never rests. Whatever moment of it is stored, each page must be from
   that moment. And nobody has made children for this process. */
#include "step.h"

enum { PAGES = 6000, PAGE = 4096 };

static volatile sig_atomic_t told;

static void count_end(int number) {
  (void)number;
  ++told;
}

/* Writes the number of the round to page after page. Before it does, that page and the next tell
 * where it is. */
static void write_round(unsigned char* memory, unsigned long round) {
  for (size_t i = 0; i < PAGES; ++i) {
    unsigned long* const page = (unsigned long*)(memory + i * PAGE);
    MUST(page[7] == round - 1);
    MUST(i == 0 || page[7 - PAGE / (long)sizeof *page] == round);
    page[7] = round;
  }
}

int main(void) {
  unsigned char* const memory =
      mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED);
  const struct sigaction count = {.sa_handler = count_end, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &count, NULL);
  unsigned long round = 0;
  for (int i = 0; i < STEPS; ++i) {
    const uint64_t end_ms = now_ms() + 2;
    do write_round(memory, ++round);
    while (now_ms() < end_ms);
    MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD && told == 0);
    step(i, (unsigned long)i);
  }
  return DONE;
}
