/* The edges of the C interface: structs of programs that are older or newer than the library,
 * options at open, Fortran's communicators, the question whether a checkpoint is due, the hook
 * before it, and the end of a job. */
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "task.h"

static double value = 1;
static int hooks = 0;

static void count_message(void* user, int severity, const char* message) {
  (void)severity;
  if (strstr(message, "DIAPAUSE_ROOT") != NULL) ++*(int*)user;
}

static int count_hook(void* context) {
  ++*(int*)context;
  value = 2;
  return 0;
}

static int refuse(void* context) {
  (void)context;
  return 5;
}

static void check_sizes(diapause_t* diapause) {
  struct {
    diapause_restart_info known;
    uint64_t more;
  } newer;
  memset(&newer, 'x', sizeof newer);
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_restart_sized(diapause, DIAPAUSE_NEWEST, &newer.known, sizeof newer));
  CHECK(newer.known.version == 6 && newer.more == 0);
  diapause_restart_info older;
  memset(&older, 'x', sizeof older);
  const diapause_restart_info untouched = older;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_sized(diapause, DIAPAUSE_NEWEST, &older,
                                                   offsetof(diapause_restart_info, level)));
  CHECK(older.version == 6);
  CHECK(memcmp(&older.level, &untouched.level,
               sizeof older - offsetof(diapause_restart_info, level)) == 0);
}

static void check_steps(diapause_t* diapause) {
  diapause_checkpoint_info info;
  double added[3] = {1, 2, 3};
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint_add(diapause, "added", added, 3, DIAPAUSE_FLOAT64));
  CHECK_SAYS("no checkpoint is open");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint_commit(diapause, NULL));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_begin(diapause, 8, DIAPAUSE_L1, &info));
  CHECK(info.version == 8 && !info.skipped && !info.taken);
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 9, DIAPAUSE_L1, NULL));
  CHECK_SAYS("version 8 is still open");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_checkpoint_add(diapause, "value", added, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_add(diapause, "added", added, 3, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_add(diapause, "text", "abc", 4, DIAPAUSE_BYTES));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_commit(diapause, &info));
  CHECK(info.taken && info.version == 8 && info.level_reached == 1);
  CHECK(info.bytes == sizeof value + sizeof added + 4);

  added[1] = 7; /* the version holds what was there at the commit */
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_begin(diapause, 9, DIAPAUSE_L1, NULL));
  if (world_rank() == 0) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_give_up(diapause, "its list is torn"));
  } else {
    CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint_commit(diapause, NULL));
    CHECK_SAYS("its list is torn");
  }
  diapause_restart_info restart;
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "added", added, 3, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &restart));
  CHECK(restart.version == 8 && added[1] == 2);
  CHECK_STATUS(DIAPAUSE_OK, diapause_unprotect(diapause, "added"));
}

static diapause_t* open_with_text(int* messages) {
  diapause_t* diapause = NULL;
  diapause_open_options options = {0};
  options.config_path = "both.toml";
  options.config_text = "";
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_mpi_open_with(MPI_COMM_WORLD, "interface", &options, &diapause));
  options.config_path = NULL;
  options.config_text = "[level1]\nevery_kalls = 1";
  CHECK_STATUS(DIAPAUSE_ERR_CONFIG,
               diapause_mpi_open_with(MPI_COMM_WORLD, "interface", &options, &diapause));
  CHECK_SAYS("every_calls");
  options.config_text = "[level1]\nevery_calls = 3\n[async]\nmode = \"off\"\n";
  options.log = count_message;
  options.log_user = messages;
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_mpi_open_with(MPI_COMM_WORLD, "interface", &options, &diapause));
  return diapause;
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  int messages = 0;
  diapause_t* diapause = open_with_text(&messages);
  CHECK(messages == (world_rank() == 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "value", &value, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_on_capture(diapause, count_hook, &hooks));
  for (uint64_t step = 1; step <= 6; ++step) {
    diapause_checkpoint_info info;
    const int is_due = diapause_is_due(diapause);
    CHECK(is_due == (step % 3 == 0));
    CHECK_STATUS(DIAPAUSE_OK, diapause_snapshot(diapause, step, &info));
    CHECK(info.taken == is_due);
  }
  CHECK(hooks == 2);
  CHECK_STATUS(DIAPAUSE_OK, diapause_on_capture(diapause, refuse, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 7, DIAPAUSE_L1, NULL));
  CHECK_SAYS("it said 5");
  CHECK_STATUS(DIAPAUSE_OK, diapause_on_capture(diapause, NULL, NULL));
  value = 3;
  check_sizes(diapause);
  CHECK(value == 2);
  check_steps(diapause);
  CHECK_STATUS(DIAPAUSE_OK, diapause_finish(diapause));

  MPI_Fint comm = 0;
  int result = MPI_UNEQUAL;
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_mpi_open_f(MPI_Comm_c2f(MPI_COMM_WORLD), "interface", NULL, &diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_comm_f(diapause, &comm));
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_Comm_f2c(comm), &result);
  CHECK(result == MPI_CONGRUENT);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "value", &value, 1, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_SAYS("was finished");
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
