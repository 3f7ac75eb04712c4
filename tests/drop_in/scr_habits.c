/* Does with SCR's functions what programs may do and seldom do: scr_habits begin|continue. The run
 * that begins is aborted while it writes a checkpoint. */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "scr.h"

static int rank;
static char own[200]; /* a file of this rank, in a folder in a folder */

static void write_number(const char* path, int number) {
  FILE* const file = fopen(path, "w");
  EXPECT(file != NULL && fprintf(file, "%d", number) > 0 && fclose(file) == 0);
}

static int number_in(const char* path) {
  int number = -1;
  FILE* const file = fopen(path, "r");
  if (file == NULL) return -1;
  EXPECT(fscanf(file, "%d", &number) == 1 && fclose(file) == 0);
  return number;
}

static int route_and_write(int number) {
  char path[SCR_MAX_FILENAME], again[SCR_MAX_FILENAME], other[250];
  EXPECT(SCR_Route_file(own, path) == SCR_SUCCESS);
  EXPECT(SCR_Route_file(own, again) == SCR_SUCCESS && strcmp(path, again) == 0);
  snprintf(other, sizeof other, "./elsewhere/..//%s", own);
  EXPECT(SCR_Route_file(other, again) == SCR_SUCCESS && strcmp(path, again) == 0);
  write_number(path, number);
  snprintf(other, sizeof other, "folder/%d.twice", rank);
  EXPECT(SCR_Route_file(other, path) == SCR_SUCCESS);
  write_number(path, number);
  snprintf(other, sizeof other, "other folder/%d.twice", rank);
  EXPECT(SCR_Route_file(other, path) == SCR_SUCCESS);
  write_number(path, number);
  snprintf(other, sizeof other, "%s.empty", own);
  EXPECT(SCR_Route_file(other, path) == SCR_SUCCESS);
  FILE* const empty = fopen(path, "w");
  EXPECT(empty != NULL && fclose(empty) == 0);
  return 1;
}

static void begin(void) {
  char path[SCR_MAX_FILENAME];
  int is_due = 7;
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS && SCR_Complete_restart(1) != SCR_SUCCESS);
  EXPECT(SCR_Need_checkpoint(&is_due) == SCR_SUCCESS && !is_due); /* no interval is set */
  /* Nobody has asked whether there is a restart. One rank has no files, the others write twice. */
  for (int number = 1; number <= 3; ++number) {
    char name[40];
    snprintf(name, sizeof name, "step %d/of many", number);
    EXPECT(SCR_Start_output(name, SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
    if (rank != 1) EXPECT(route_and_write(number - 1) && route_and_write(number));
    EXPECT(SCR_Complete_output(1) == SCR_SUCCESS);
  }
  EXPECT(SCR_Start_checkpoint() == SCR_SUCCESS && SCR_Complete_checkpoint(1) == SCR_SUCCESS);
  EXPECT(SCR_Start_output("plot", SCR_FLAG_OUTPUT) == SCR_SUCCESS);
  EXPECT(route_and_write(77) && SCR_Complete_output(1) == SCR_SUCCESS && number_in(own) == 77);
  /* It writes to its own path, and not to the one that it was given. */
  EXPECT(SCR_Start_checkpoint() == SCR_SUCCESS && SCR_Route_file(own, path) == SCR_SUCCESS);
  write_number(own, 77);
  EXPECT(SCR_Complete_checkpoint(1) != SCR_SUCCESS);
  EXPECT(SCR_Start_checkpoint() == SCR_SUCCESS && SCR_Route_file(own, path) == SCR_SUCCESS);
  write_number(path, 99);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD); /* and never goes on */
}

static void go_on(void) {
  char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
  int is_there = 0;
  EXPECT(SCR_Have_restart(&is_there, name) == SCR_SUCCESS && is_there);
  EXPECT(SCR_Have_restart(&is_there, NULL) == SCR_SUCCESS && is_there);
  EXPECT(SCR_Start_restart(name) == SCR_SUCCESS);
  EXPECT(SCR_Route_file(own, path) != SCR_SUCCESS); /* the newest has no files */
  EXPECT(SCR_Start_output("early", SCR_FLAG_CHECKPOINT) != SCR_SUCCESS);
  EXPECT(SCR_Complete_restart(0) != SCR_SUCCESS);
  EXPECT(SCR_Have_restart(&is_there, name) == SCR_SUCCESS && is_there);
  EXPECT(strcmp(name, "step 3/of many") == 0);
  EXPECT(SCR_Start_restart(name) == SCR_SUCCESS);
  if (rank != 1) {
    EXPECT(SCR_Route_file(own, path) == SCR_SUCCESS && number_in(path) == 3);
    EXPECT(SCR_Route_file(own, path) == SCR_SUCCESS && number_in(path) == 3);
    EXPECT(unlink(path) == 0); /* the copy is the program's own */
    snprintf(path, sizeof path, "%d.twice", rank);
    EXPECT(SCR_Route_file(path, path) != SCR_SUCCESS); /* in which of the folders? */
  }
  EXPECT(SCR_Complete_restart(1) == SCR_SUCCESS);
  EXPECT(SCR_Start_output("step 3/of many", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS); /* again */
  if (rank != 1) EXPECT(route_and_write(30));
  EXPECT(SCR_Complete_output(1) == SCR_SUCCESS);
  EXPECT(SCR_Drop("step 1/of many") == SCR_SUCCESS && SCR_Delete("plot") == SCR_SUCCESS);
  EXPECT(SCR_Current("step 3/of many") == SCR_SUCCESS && SCR_Start_restart(name) == SCR_SUCCESS);
  if (rank != 1) EXPECT(SCR_Route_file(own, path) == SCR_SUCCESS && number_in(path) == 30);
  EXPECT(SCR_Complete_restart(1) == SCR_SUCCESS && SCR_Finalize() == SCR_SUCCESS);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(own, sizeof own, "folder/in a folder/%d.txt", rank);
  SCR_Config("  SCR_COPY_TYPE\t =SINGLE ");
  SCR_Config("SCR_CACHE_SIZE = 9");
  EXPECT(SCR_Init() == SCR_SUCCESS);
  strcmp(argv[1], "begin") == 0 ? begin() : go_on();
  MPI_Finalize();
  return 0;
}
