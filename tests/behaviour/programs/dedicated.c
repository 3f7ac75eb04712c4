/* A dedicated rank: what the program computes on, and what each rank may call. argv[1] is
 * the number of ranks that compute, argv[2] who does the rest of a checkpoint, as text. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

static diapause_t* diapause;
static uint64_t words[100];

static void be_dedicated(void) {
  diapause_checkpoint_info info;
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT,
               diapause_protect(diapause, "words", words, 100, DIAPAUSE_UINT64));
  CHECK_SAYS("is dedicated");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 1, DIAPAUSE_L1, &info));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_snapshot(diapause, 1, &info));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_wait(diapause, 1, DIAPAUSE_L1, 1));
  CHECK(diapause_worker_of(diapause) == DIAPAUSE_ERR_ARGUMENT);
  CHECK(diapause_stored_count(diapause) == DIAPAUSE_ERR_ARGUMENT);
  CHECK(diapause_should_stop(diapause, NULL) == DIAPAUSE_GO_ON);
  CHECK(strcmp(diapause_restart_reason(diapause), "") == 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_set_log(diapause, NULL, NULL));
}

static void compute(MPI_Comm comm, int worker) {
  int rank, sum = 1;
  CHECK(diapause_worker_of(diapause) == worker);
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < 100; ++i) words[i] = (uint64_t)(1000 * rank + i);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "words", words, 100, DIAPAUSE_UINT64));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 7, DIAPAUSE_L4, NULL));
  memset(words, 0, sizeof words);
  CHECK_STATUS(DIAPAUSE_OK, diapause_wait(diapause, 7, DIAPAUSE_L4, 60));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK(words[99] == (uint64_t)(1000 * rank + 99));
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  MPI_Comm comm = MPI_COMM_NULL;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "dedicated", NULL, &diapause)) &&
      CHECK_STATUS(DIAPAUSE_OK, diapause_comm(diapause, &comm))) {
    int computing = comm != MPI_COMM_NULL;
    if (computing) compute(comm, argc > 2 ? atoi(argv[2]) : -1);
    if (!computing) be_dedicated();
    CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
    MPI_Allreduce(MPI_IN_PLACE, &computing, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(argc > 1 && computing == atoi(argv[1]));
  }
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_comm(NULL, &comm));
  CHECK(comm == MPI_COMM_NULL);
  return end_checks();
}
