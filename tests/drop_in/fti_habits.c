/* Does with FTI's functions what programs may do and seldom do: fti_habits CONFIGURATION
 * begin|ignore|continue. The ranks but the last have a communicator of their own. The run that
 * begins is aborted after its last checkpoint, and the next one ends by exit(), without any
 * Finalize. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fti.h"

static int rank;

/* Grows the memory, registers it where it lies now, and fills it. */
static double* grown(double* values, int count) {
  values = realloc(values, (size_t)count * sizeof *values);
  for (int i = 0; i < count; ++i) values[i] = 100 * rank + i;
  EXPECT(FTI_Protect(3, values, count, FTI_DBLE) == FTI_SCES);
  return values;
}

static int is_filled(const double* values, int count) {
  for (int i = 0; i < count; ++i) {
    if (values[i] != 100 * rank + i) return 0;
  }
  return 1;
}

static void begin(void) {
  double* values = NULL;
  short only_of_first = 9;
  EXPECT(FTI_Status() == 0);
  EXPECT(FTI_Recover() == FTI_NREC && FTI_RecoverVar(3) == FTI_NREC);
  EXPECT(FTI_GetStoredSize(3) == 0);
  EXPECT(FTI_FinalizeICP() == FTI_SCES);         /* none was begun */
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_DONE); /* of nothing */
  for (int step = 1; step <= 4; ++step) {
    values = grown(values, 1000 * step);
    EXPECT(FTI_Checkpoint(7, step) == FTI_DONE); /* the same number again */
  }
  EXPECT(FTI_Protect(3, values, 4000, FTI_CHAR) == FTI_SCES); /* of another type, and back */
  EXPECT(FTI_Protect(3, values, 4000, FTI_DBLE) == FTI_SCES);
  if (rank == 0) EXPECT(FTI_Protect(8, &only_of_first, 1, FTI_SHRT) == FTI_SCES);
  EXPECT(FTI_Protect(4, NULL, 0, FTI_INTG) == FTI_SCES);
  EXPECT(FTI_Checkpoint(7, FTI_L1) == FTI_DONE);
  free(values); /* while it is still stored, perhaps */
  MPI_Barrier(FTI_COMM_WORLD);
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(FTI_COMM_WORLD); /* and never goes on */
}

/* The program does not want what is stored. */
static void ignore(void) {
  EXPECT(FTI_Status() == 1);
  double* const values = grown(NULL, 50);
  EXPECT(FTI_Checkpoint(8, FTI_L1) == FTI_DONE);
  EXPECT(FTI_Protect(3, values, 50, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Checkpoint(9, FTI_L4) == FTI_DONE);
}

static void go_on(void) {
  double* values = malloc(50 * sizeof *values);
  int number = 5;
  EXPECT(FTI_Status() == 1 && FTI_GetStoredSize(3) == 50 * sizeof *values);
  EXPECT(FTI_Protect(4, &number, 1, FTI_INTG) == FTI_SCES); /* it was not stored */
  EXPECT(FTI_Protect(3, values, 50, FTI_DBLE) == FTI_SCES);
  EXPECT(FTI_Recover() == FTI_NREC);
  EXPECT(FTI_RecoverVarInit() == FTI_SCES && FTI_RecoverVar(4) == FTI_NREC);
  EXPECT(FTI_RecoverVar(3) == FTI_SCES && FTI_RecoverVar(3) == FTI_SCES);
  EXPECT(FTI_RecoverVarFinalize() == FTI_SCES);
  EXPECT(is_filled(values, 50) && number == 5);
  values = grown(values, 70);
  EXPECT(FTI_Checkpoint(1, FTI_L2) == FTI_DONE);
  memset(values, 0, 70 * sizeof *values);
  EXPECT(FTI_Recover() == FTI_SCES && is_filled(values, 70)); /* what was taken last */
  EXPECT(FTI_Finalize() == FTI_SCES && FTI_Finalize() == FTI_NSCS);
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_NSCS && FTI_Status() == 0);
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
  if (rank < ranks - 1) {
    EXPECT(FTI_Init(argv[1], comm) == FTI_SCES);
    MPI_Comm_free(&comm);
    if (strcmp(argv[2], "begin") == 0) begin();
    if (strcmp(argv[2], "ignore") == 0) ignore();
    if (strcmp(argv[2], "continue") == 0) go_on();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[2], "ignore") == 0) exit(0);
  MPI_Finalize();
  return 0;
}
