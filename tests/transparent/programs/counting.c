/* Has one thread, and no library but the C library. Its state is in registers, vector registers,
 * stack, data and heap. */
#include "step.h"

static unsigned long table[4096];

int main(void) {
  unsigned long* const heap = malloc(1 << 20);
  MUST(heap != NULL);
  double sum = 1;
  const pid_t process = getpid();
  for (int i = 0; i < STEPS; ++i) {
    for (unsigned j = 0; j < 4096; ++j) {
      table[j] = table[j] * 31 + j + (unsigned long)i;
      heap[j * 32] = table[j] ^ (unsigned long)process;
      sum = sum * 1.000001 + (double)(table[j] & 255);
    }
    MUST(getpid() == process);
    unsigned long bits;
    memcpy(&bits, &sum, sizeof bits);
    step(i, heap[(unsigned)i * 32] ^ (unsigned long)process ^ bits);
  }
  return DONE;
}
