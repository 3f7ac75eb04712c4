/* Two programs at the same checkpoints at once: the second is refused and learns who the first is;
 * the first notices nothing. Under another name both go on side by side. */
#include "check.h"

static int64_t step;

static void checkpoint_and_restart(diapause_t* diapause) {
  step = 7;
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L4, NULL));
  step = 0;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK(step == 7);
}

/* Holds its checkpoints until the second program has had its answer. */
static void be_first(void) {
  diapause_t *diapause = NULL, *twice = NULL;
  if (!CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "busy", NULL, &diapause)))
    return;
  checkpoint_and_restart(diapause);
  CHECK_STATUS(DIAPAUSE_ERR_BUSY, diapause_mpi_open(MPI_COMM_WORLD, "busy", NULL, &twice));
  CHECK(twice == NULL);
  make_file("first-is-there");
  wait_for_file("second-is-done");
  checkpoint_and_restart(diapause);
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
}

/* argv[2]: what the error must say of the holder. */
static void be_second(const char* holder) {
  diapause_t* diapause = NULL;
  CHECK_STATUS(DIAPAUSE_ERR_BUSY, diapause_mpi_open(MPI_COMM_WORLD, "busy", NULL, &diapause));
  CHECK(diapause == NULL);
  CHECK_SAYS(holder);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "not-busy", NULL, &diapause))) {
    checkpoint_and_restart(diapause);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  MPI_Barrier(MPI_COMM_WORLD);
  make_file("second-is-done");
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  if (is_part("first")) be_first();
  if (is_part("second") && argc > 2) be_second(argv[2]);
  return end_checks();
}
