/* Threads of OpenMP: loops that are shared out, tasks, and a sum that they agree on. */
#include "step.h"

enum { COUNT = 20000 };

static unsigned long table[COUNT];

static unsigned long fibonacci(unsigned number) {
  unsigned long one = 0, other = 0;
  if (number < 8) return number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2);
#pragma omp task shared(one)
  one = fibonacci(number - 1);
#pragma omp task shared(other)
  other = fibonacci(number - 2);
#pragma omp taskwait
  return one + other;
}

int main(void) {
  for (int i = 0; i < STEPS; ++i) {
    unsigned long sum = 0, deep = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sum)
    for (int k = 0; k < COUNT; ++k) {
      table[k] = table[k] * 31 + (unsigned long)(i ^ k);
      sum += table[k];
    }
#pragma omp parallel
#pragma omp single
    deep = fibonacci(12 + (unsigned)i % 4);
    step(i, sum ^ deep);
  }
  return DONE;
}
