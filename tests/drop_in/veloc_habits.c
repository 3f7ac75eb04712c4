/* Does with VELOC's functions what programs may do and seldom do: veloc_habits CONFIGURATION
 * begin|continue. The ranks but the last have a communicator of their own for the checkpoints, and
 * of them the last has nothing to store. The run that begins calls exit() after its last
 * checkpoint, without any Finalize. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "veloc.h"

static int rank;

static int has_memory(void) { return rank == 0; }

/* Grows the memory, registers it where it lies now, and fills it. */
static double* grown(double* values, int count) {
  values = realloc(values, (size_t)count * sizeof *values);
  for (int i = 0; i < count; ++i) values[i] = 100 * rank + i;
  if (has_memory()) EXPECT(VELOC_Mem_protect(1, values, (size_t)count, sizeof *values) == 0);
  return values;
}

/* On its own it would wait for ever for the others, or they for it. */
static void what_one_rank_cannot_store_fails_on_all(void) {
  int number = 1, ids[] = {1};
  int* const wrong = (int*)16;
  EXPECT(VELOC_Region_protect(1, rank == 1 ? wrong : &number, 1, sizeof number, "wrong") ==
         VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("wrong", 1) == VELOC_FAILURE);
  EXPECT(VELOC_Region_protect(1, &number, 1, sizeof number, "wrong") == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_begin("wrong", 2) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_selective(rank == 1 ? 99 : VELOC_CKPT_SOME, ids, 1) == VELOC_FAILURE);
  EXPECT(VELOC_Checkpoint_mem() == VELOC_SUCCESS && VELOC_Checkpoint_end(1) == VELOC_SUCCESS);
}

static void begin(void) {
  static int other = 7;
  double* values = NULL;
  EXPECT(VELOC_Checkpoint_wait() == VELOC_SUCCESS); /* there is none */
  EXPECT(VELOC_Checkpoint_finished() == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("growing", 1) == VELOC_FAILURE); /* nothing is protected */
  EXPECT(VELOC_Restart_test("growing", 0) == -1);
  what_one_rank_cannot_store_fails_on_all();
  for (int step = 1; step <= 4; ++step) {
    values = grown(values, 1000 * step);
    EXPECT(VELOC_Checkpoint("growing", step) == VELOC_SUCCESS);
  }
  EXPECT(VELOC_Region_protect(5, &other, 1, sizeof other, "other") == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("other", 2) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_wait() == VELOC_SUCCESS); /* for both of these names */
  if (has_memory()) EXPECT(VELOC_Mem_protect(2, &other, 1, sizeof other) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("growing", 5) == VELOC_SUCCESS);
  EXPECT(VELOC_Mem_unprotect(2) == (has_memory() ? VELOC_SUCCESS : VELOC_FAILURE));
  free(values); /* while it is still stored, perhaps */
}

static void go_on(void) {
  int other = 0;
  double* values = calloc(4000, sizeof *values);
  EXPECT(VELOC_Restart_test("other", 0) == 2 && VELOC_Restart_test("growing", 0) == 5);
  if (has_memory()) EXPECT(VELOC_Mem_protect(1, values, 4000, sizeof *values) == VELOC_SUCCESS);
  /* Fewer regions are protected than stored: those are refused, or left out by their numbers. */
  EXPECT(VELOC_Restart("growing", 5) == (has_memory() ? VELOC_FAILURE : VELOC_SUCCESS));
  int ids[] = {1};
  EXPECT(VELOC_Restart_begin("growing", 5) == VELOC_SUCCESS);
  EXPECT(VELOC_Recover_selective(VELOC_RECOVER_SOME, ids, 1) == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_end(1) == VELOC_SUCCESS);
  for (int i = 0; i < 4000; ++i) EXPECT(values[i] == (has_memory() ? i : 0));
  EXPECT(VELOC_Region_protect(5, &other, 1, sizeof other, "other") == VELOC_SUCCESS);
  EXPECT(VELOC_Restart("other", 2) == VELOC_SUCCESS && other == 7);
  EXPECT(VELOC_Checkpoint("growing", 3) == VELOC_SUCCESS); /* a number that was there before */
  /* It is the newest, and what the last run has taken after it is not any more. */
  EXPECT(VELOC_Restart_test("growing", 0) == 3 && VELOC_Restart_test("growing", 4) == 3);
  EXPECT(VELOC_Init(MPI_COMM_NULL, "there/is/no/such/file") == VELOC_FAILURE);
  EXPECT(VELOC_Finalize(1) == VELOC_SUCCESS);
  free(values);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  int ranks;
  MPI_Init(&argc, &argv);
  EXPECT(argc == 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1, rank, &comm);
  const int begins = strcmp(argv[2], "begin") == 0;
  if (rank < ranks - 1) {
    EXPECT(VELOC_Init(comm, argv[1]) == VELOC_SUCCESS);
    begins ? begin() : go_on();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (begins) exit(0);
  MPI_Finalize();
  return 0;
}
