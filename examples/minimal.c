/* The smallest program that continues where it stopped. Run it twice: the first run stops half-way
 * on purpose, the second continues from the last checkpoint and finishes. A third begins anew. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "diapause/diapause.h"

static void tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "minimal: %s\n", diapause_last_error());
}

int main(void) {
  enum { kSteps = 100, kEvery = 10, kStopAt = 57 };
  uint64_t sum = 0, first = 0;

  diapause_t* diapause = NULL;
  tell(diapause_open("minimal", NULL, &diapause));
  tell(diapause_protect(diapause, "sum", &sum, 1, DIAPAUSE_UINT64));

  diapause_restart_info restart;
  const int status = diapause_restart(diapause, DIAPAUSE_NEWEST, &restart);
  if (status == DIAPAUSE_OK) {
    first = restart.version; /* our versions are step numbers */
    printf("continuing after step %" PRIu64 "\n", first);
  } else if (status != DIAPAUSE_ERR_NOT_FOUND) { /* NOT_FOUND is a fresh start */
    tell(status); /* there are checkpoints: to begin anew would lose them */
    return 2;
  }

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    sum += step;
    if (step % kEvery == 0) tell(diapause_checkpoint(diapause, step, DIAPAUSE_L1, NULL));
    if (first == 0 && step == kStopAt) {
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3); /* like a crash: nothing is closed */
    }
  }

  printf("1 + ... + %d = %" PRIu64 "\n", kSteps, sum);
  tell(diapause_finish(diapause)); /* done: the next run begins anew */
  return sum == kSteps * (kSteps + 1) / 2 ? 0 : 1;
}
