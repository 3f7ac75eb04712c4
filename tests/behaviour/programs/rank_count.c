/* A run with another number of ranks than the checkpoints have: a clear refusal on all of them, and
 * nothing is lost. */
#include "check.h"

static int64_t step;

static void be_refused(diapause_t* diapause) {
  step = -1;
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_SAYS("4 ranks");
  CHECK(step == -1);
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_checkpoint(diapause, 2, DIAPAUSE_L4, NULL));
  CHECK_SAYS("4 ranks");
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_snapshot(diapause, 3, NULL));
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "rank-count", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
    step = 10 + world_rank();
    if (is_part("write"))
      CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L4, NULL));
    if (is_part("refused")) be_refused(diapause);
    if (is_part("read")) {
      step = -1;
      CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
      CHECK(step == 10 + world_rank());
    }
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
