/* A region that grows and shrinks: a list becomes longer for a while and then shorter. Each
 * checkpoint holds the numbers that the list has at that moment. The restart asks how many are
 * stored before it allocates memory for them. Run the program twice: the first run stops half-way
 * on purpose. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diapause/diapause.h"

enum { kSteps = 180, kGrowUntil = 100, kBatch = 1000, kEvery = 20, kStopAt = 130 };

static uint64_t *numbers, count;

static void tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "growing: %s\n", diapause_last_error());
}

static void resize(uint64_t wanted) {
  numbers = realloc(numbers, (wanted > 0 ? wanted : 1) * sizeof *numbers);
  if (numbers == NULL) abort();
  count = wanted;
}

/* A name that is protected again gets a new address and length. */
static int protect(diapause_t* diapause) {
  return diapause_protect(diapause, "numbers", numbers, count, DIAPAUSE_UINT64);
}

static uint64_t continue_from_checkpoint(diapause_t* diapause) {
  diapause_restart_info restart;
  diapause_region_info stored;
  int status = diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &restart);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  if (status == DIAPAUSE_OK) status = diapause_stored_find(diapause, "numbers", &stored);
  if (status == DIAPAUSE_OK) {
    resize(stored.count);
    status = protect(diapause);
  }
  if (status == DIAPAUSE_OK) status = diapause_restore(diapause, NULL, 0);
  if (status != DIAPAUSE_OK) {
    tell(status);
    exit(2);
  }
  tell(diapause_restart_end(diapause));
  printf("continuing after step %" PRIu64 " with %" PRIu64 " numbers\n", restart.version, count);
  return restart.version;
}

int main(void) {
  diapause_t* diapause = NULL;
  tell(diapause_open("growing", NULL, &diapause));
  const uint64_t first = continue_from_checkpoint(diapause);

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    resize(step <= kGrowUntil ? count + kBatch : count - kBatch);
    for (uint64_t k = count - kBatch; step <= kGrowUntil && k < count; ++k)
      numbers[k] = k * k + step;
    if (step % kEvery == 0) {
      tell(protect(diapause));
      tell(diapause_checkpoint(diapause, step, DIAPAUSE_L1, NULL));
      tell(diapause_unprotect(diapause, "numbers")); /* the memory is freed in the next step */
    }
    if (first == 0 && step == kStopAt) {
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3);
    }
  }

  int wrong = count != (2 * kGrowUntil - kSteps) * kBatch;
  for (uint64_t k = 0; k < count; ++k) wrong |= numbers[k] != k * k + k / kBatch + 1;
  printf("%" PRIu64 " numbers left, %s\n", count, wrong ? "some wrong" : "all as they should be");
  tell(diapause_finish(diapause)); /* done: the next run begins anew */
  free(numbers);
  return wrong;
}
