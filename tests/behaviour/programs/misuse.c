/* Wrong calls: each gives its error, touches nothing, and the program and the instance go on. */
#include <string.h>

#include "check.h"

static int64_t step = 5;
static diapause_t* diapause;

static void open_wrongly(void) {
  diapause_t* none = NULL;
  const char* too_long = "12345678901234567890123456789012345678901234567890123456789012345";
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_WORLD, "a", NULL, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_WORLD, NULL, NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_NULL, "a", NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_WORLD, "../a", NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_WORLD, "", NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(MPI_COMM_WORLD, too_long, NULL, &none));
  CHECK_STATUS(DIAPAUSE_ERR_CONFIG,
               diapause_mpi_open(MPI_COMM_WORLD, "a", "no-such-file.toml", &none));
  CHECK_SAYS("no-such-file.toml");
  CHECK(none == NULL);
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(NULL));
}

/* Each of the two ranks is a group of its own. */
static void open_between_groups(void) {
  diapause_t* none = NULL;
  MPI_Comm both_sides = MPI_COMM_NULL;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - world_rank(), 7, &both_sides);
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_mpi_open(both_sides, "a", NULL, &none));
  CHECK_SAYS("intercommunicator");
  MPI_Comm_free(&both_sides);
}

static void protect_wrongly(void) {
  char name[257];
  memset(name, 'n', sizeof name);
  name[256] = '\0';
  const uint64_t two = 2, one = 1;
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(NULL, "a", &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, NULL, &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, "", &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, name, &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, "a", NULL, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_protect(diapause, "a", &step, UINT64_MAX, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, "a", &step, 1, DIAPAUSE_BYTES));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect(diapause, "a", &step, 1, (diapause_type)99));
  CHECK_SAYS("region 'a': 99");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_protect_bytes(diapause, "a", &step, 1, 0));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_protect_block(diapause, "a", &step, DIAPAUSE_INT64, 9, &one, &two, &one));
  CHECK_SAYS("region 'a': 9 dimensions");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_protect_block(diapause, "a", &step, DIAPAUSE_INT64, 1, &two, &two, &one));
  CHECK_SAYS("region 'a': dimension 0");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_protect_block(diapause, NULL, &step, DIAPAUSE_INT64, 1, &one, &two, &one));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_unprotect(diapause, "a"));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_declare(diapause, "a", DIAPAUSE_STABLE));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_declare(diapause, NULL, DIAPAUSE_STABLE));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_declare(diapause, "a", (diapause_declaration)3));
  CHECK_SAYS("region 'a': there is no declaration of number 3");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_allow_loss(diapause, "a", (diapause_lossy_codec)3, 1.0));
  CHECK_SAYS("region 'a': there is no lossy codec of number 3");
}

static void checkpoint_wrongly(void) {
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 1, 0, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 1, 5, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint(diapause, DIAPAUSE_NEWEST, DIAPAUSE_L1, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(NULL, 1, DIAPAUSE_L1, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_snapshot(NULL, 1, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK(step == 5);
}

static void restart_wrongly(void) {
  diapause_region_info info;
  int64_t two[2] = {1, 2};
  double real = 3;
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restore(diapause, NULL, 0));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart_end(diapause));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_stored_find(diapause, "step", &info));
  CHECK(diapause_stored_count(diapause) == DIAPAUSE_ERR_ARGUMENT);

  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restore(diapause, NULL, 1));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_stored_at(diapause, 0, NULL));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", two, 2, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_restore(diapause, NULL, 0));
  CHECK_SAYS("step");
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &real, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_restore(diapause, NULL, 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "new", &real, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_ERR_MISMATCH, diapause_restore(diapause, NULL, 0)); /* no fresh start */
  CHECK_SAYS("new");
  CHECK(two[0] == 1 && two[1] == 2 && real == 3 && step == 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_unprotect(diapause, "new"));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, NULL, 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  CHECK(step == 5);
}

int main(int argc, char** argv) {
  CHECK_STATUS(DIAPAUSE_ERR_COMM, diapause_mpi_open(MPI_COMM_WORLD, "misuse", NULL, &diapause));
  begin_checks(&argc, &argv);
  open_wrongly();
  open_between_groups();
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "misuse", NULL, &diapause))) {
    protect_wrongly();
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
    checkpoint_wrongly();
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L1, NULL));
    step = 0;
    restart_wrongly();
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
