/* One rank makes another call than the others: all get an error, none is left waiting, and nobody's
 * memory changes. */
#include "check.h"

static int64_t step;
static diapause_t* diapause;

static bool odd_one(void) { return world_rank() == 1; }

static void open_differently(void) {
  diapause_t* none = NULL;
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_mpi_open(MPI_COMM_WORLD, odd_one() ? "one" : "other", NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_mpi_open(MPI_COMM_WORLD, odd_one() ? "/" : "other", NULL, &none));
  CHECK(none == NULL);
}

static void checkpoint_differently(void) {
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint(diapause, odd_one() ? 8 : 9, DIAPAUSE_L1, NULL));
  CHECK_SAYS("version 8");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint(diapause, 9, odd_one() ? DIAPAUSE_L2 : DIAPAUSE_L1, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint(diapause, 9, odd_one() ? 7 : DIAPAUSE_L1, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint(diapause, odd_one() ? DIAPAUSE_NEWEST : 9, DIAPAUSE_L1, NULL));
}

static void restart_differently(void) {
  step = -1;
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_restart(diapause, odd_one() ? 1 : DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart(diapause, odd_one() ? 3 : 2, NULL));
  CHECK(step == -1);
}

/* One rank has protected what does not fit, or names what it has not protected. */
static void restore_differently(void) {
  double real = 3;
  const char* names[] = {"step"};
  const char* unknown[] = {"unknown"};
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, NULL));
  if (odd_one())
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &real, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_restore(diapause, names, 1));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restore(diapause, odd_one() ? unknown : names, 1));
  CHECK(step == -1);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, names, odd_one() ? 1 : 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  CHECK(step == 20 + world_rank());
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  open_differently();
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "disagree", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
    for (uint64_t version = 1; version <= 2; ++version) {
      step = (int64_t)version * 10 + world_rank();
      CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, version, DIAPAUSE_L2, NULL));
    }
    checkpoint_differently();
    restart_differently();
    restore_differently();
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
