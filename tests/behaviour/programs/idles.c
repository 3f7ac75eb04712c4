/* A rank that waits in a checkpoint for another one leaves the processor to others. */
#include <time.h>

#include "check.h"

static uint64_t words[1000];

static double seconds(clockid_t clock) {
  struct timespec now = {0, 0};
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void be_late(void) {
  const struct timespec second = {1, 0};
  nanosleep(&second, NULL);
}

int main(int argc, char** argv) {
  diapause_t* diapause;
  begin_checks(&argc, &argv);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "idles", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "words", words, 1000, DIAPAUSE_UINT64));
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L2, NULL));
    if (world_rank() == 1) be_late();
    const double wall_s = seconds(CLOCK_MONOTONIC);
    const double used_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 2, DIAPAUSE_L2, NULL));
    const double waited_s = seconds(CLOCK_MONOTONIC) - wall_s;
    CHECK(world_rank() == 1 || waited_s > 0.5);
    /* Far from both a wait that is busy and one that sleeps. */
    CHECK(world_rank() == 1 || seconds(CLOCK_PROCESS_CPUTIME_ID) - used_s < 0.25 * waited_s);
    CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  }
  return end_checks();
}
