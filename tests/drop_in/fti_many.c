/* Takes a checkpoint of very many variables, and recovers them: fti_many CONFIGURATION. */
#include <stdlib.h>

#include "expect.h"
#include "fti.h"

enum { kCount = 200 * 1000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  EXPECT(argc == 2);
  EXPECT(FTI_Init(argv[1], MPI_COMM_WORLD) == FTI_SCES);
  double* const values = malloc(kCount * sizeof *values);
  for (int i = 0; i < kCount; ++i) {
    values[i] = i;
    EXPECT(FTI_Protect(i, &values[i], 1, FTI_DBLE) == FTI_SCES);
  }
  EXPECT(FTI_Checkpoint(1, FTI_L1) == FTI_DONE);
  for (int i = 0; i < kCount; ++i) values[i] = -1;
  EXPECT(FTI_Recover() == FTI_SCES);
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == i);
  EXPECT(FTI_Finalize() == FTI_SCES);
  free(values);
  MPI_Finalize();
  return 0;
}
