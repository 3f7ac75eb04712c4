/* A restart from a version asked for by number, and what counts as newest afterwards. */
#include "check.h"

static int64_t step;

static void checkpoint(diapause_t* diapause, int64_t number, int64_t value) {
  step = value;
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, (uint64_t)number, DIAPAUSE_L1, NULL));
}

static void expect(diapause_t* diapause, uint64_t asked, uint64_t version, int64_t value) {
  diapause_restart_info info;
  step = -1;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, asked, &info));
  CHECK(info.version == version);
  CHECK(info.stepped_back == 0);
  CHECK(step == value);
  CHECK(*diapause_restart_reason(diapause) == '\0');
}

/* Versions 10 to 40; then back to 20 and on from there in another way. */
static void go_back(diapause_t* diapause) {
  expect(diapause, DIAPAUSE_NEWEST, 40, 40);
  step = -1;
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restart(diapause, 25, NULL));
  CHECK_SAYS("25");
  CHECK(step == -1);
  expect(diapause, 20, 20, 20);
  checkpoint(diapause, 30, 31);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "older", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
    for (int64_t number = 10; number <= 40 && is_part("write"); number += 10)
      checkpoint(diapause, number, number);
    if (is_part("back")) go_back(diapause);
    if (is_part("newest")) expect(diapause, DIAPAUSE_NEWEST, 30, 31);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
