/* A program that was compiled with SCR's own header, and is only linked again: the functions are
 * declared here as in SCR 3.1, and our header is not seen. relinked_scr. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

int SCR_Init(void);
int SCR_Finalize(void);
const char* SCR_Config(const char*);
int SCR_Need_checkpoint(int*);
int SCR_Should_exit(int*);
int SCR_Route_file(const char*, char*);
int SCR_Start_output(const char*, int);
int SCR_Complete_output(int);
int SCR_Have_restart(int*, char*);
int SCR_Start_restart(char*);
int SCR_Complete_restart(int);
char* SCR_Get_version(void);

int main(int argc, char** argv) {
  char routed[1024], name[1024], original[64];
  int flag = -1, rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  SCR_Config("SCR_CACHE_BYPASS=0");
  EXPECT(SCR_Init() == 0 && SCR_Get_version() != NULL);
  EXPECT(SCR_Have_restart(&flag, name) == 0 && flag == 0);
  EXPECT(SCR_Need_checkpoint(&flag) == 0 && SCR_Should_exit(&flag) == 0 && flag == 0);
  snprintf(original, sizeof original, "one/rank_%d", rank);
  EXPECT(SCR_Start_output("one", 1 << 0) == 0 && SCR_Route_file(original, routed) == 0);
  FILE* const file = fopen(routed, "w");
  EXPECT(file != NULL && fprintf(file, "%d", rank) > 0 && fclose(file) == 0);
  EXPECT(SCR_Complete_output(1) == 0);
  EXPECT(SCR_Finalize() == 0);
  EXPECT(SCR_Init() == 0 && SCR_Have_restart(&flag, name) == 0 && flag == 1);
  EXPECT(SCR_Start_restart(name) == 0 && strcmp(name, "one") == 0);
  EXPECT(SCR_Route_file(original, routed) == 0);
  FILE* const again = fopen(routed, "r");
  EXPECT(again != NULL && fscanf(again, "%d", &flag) == 1 && flag == rank && fclose(again) == 0);
  EXPECT(SCR_Complete_restart(1) == 0 && SCR_Finalize() == 0);
  MPI_Finalize();
  return 0;
}
