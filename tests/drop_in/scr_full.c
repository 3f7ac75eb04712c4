/* The prefix directory fills up: scr_full begin|continue, in a file system of about 24 MB. A
 * dataset that SCR_Complete_output says has failed is offered to no restart, and is at no path of
 * its own. */
#include <fcntl.h>
#include <mpi.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "scr.h"

enum { kSmall = 1000000, kLarge = 4000000 }; /* the room of old small ones is not enough */
static const char kFiller[] = "filler";
static int rank;

/* Each rank's file of a dataset is full of one letter. */
static int dataset(const char* name, int flags, char letter, size_t bytes) {
  static char data[kLarge];
  char path[SCR_MAX_FILENAME];
  snprintf(path, sizeof path, "%s.%d", name, rank);
  EXPECT(SCR_Start_output(name, flags) == SCR_SUCCESS);
  EXPECT(SCR_Route_file(path, path) == SCR_SUCCESS);
  memset(data, letter, sizeof data);
  FILE* const file = fopen(path, "w");
  EXPECT(file != NULL && fwrite(data, bytes, 1, file) == 1 && fclose(file) == 0);
  return SCR_Complete_output(1);
}

static void expect_letter(const char* path, char letter) {
  static char data[kLarge];
  FILE* const file = fopen(path, "r");
  EXPECT(file != NULL);
  const size_t bytes = fread(data, 1, sizeof data, file);
  EXPECT(fclose(file) == 0 && bytes > 0 && data[0] == letter && data[bytes - 1] == letter);
}

static void expect_restart(const char* expected, char letter) {
  char name[SCR_MAX_FILENAME] = "", path[SCR_MAX_FILENAME];
  int is_there = 0;
  EXPECT(SCR_Have_restart(&is_there, name) == SCR_SUCCESS && is_there);
  if (strcmp(name, expected) != 0) fprintf(stderr, "offered: %s\n", name);
  EXPECT(strcmp(name, expected) == 0 && SCR_Start_restart(name) == SCR_SUCCESS);
  snprintf(path, sizeof path, "%.900s.%d", name, rank);
  EXPECT(SCR_Route_file(path, path) == SCR_SUCCESS);
  expect_letter(path, letter);
  EXPECT(SCR_Complete_restart(1) == SCR_SUCCESS);
}

/* Somebody else's file takes nearly all the room that there is. */
static void take_room(void) {
  static char block[4096];
  const int file = rank == 0 ? open(kFiller, O_CREAT | O_WRONLY, 0600) : -1;
  while (file >= 0 && write(file, block, sizeof block) > 0) continue;
  if (file >= 0) close(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void give_room_back(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(kFiller);
  MPI_Barrier(MPI_COMM_WORLD);
}

static int is_there(const char* name) {
  struct stat status;
  return stat(name, &status) == 0;
}

static void begin(void) {
  char plot[20], part[30];
  const int both = SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT;
  snprintf(plot, sizeof plot, "plot.%d", rank);
  snprintf(part, sizeof part, "%s.part", plot);
  EXPECT(dataset("plot", both, 'a', kSmall) == SCR_SUCCESS);
  EXPECT(dataset("first", SCR_FLAG_CHECKPOINT, 'b', kSmall) == SCR_SUCCESS);
  take_room();
  EXPECT(dataset("plot", both, 'c', kLarge) != SCR_SUCCESS && !is_there(part));
  expect_letter(plot, 'a'); /* that of the one before */
  EXPECT(dataset("lost", SCR_FLAG_CHECKPOINT, 'd', kLarge) != SCR_SUCCESS);
  EXPECT(dataset("lost again", SCR_FLAG_CHECKPOINT, 'e', kLarge) != SCR_SUCCESS);
}

static void go_on(void) {
  expect_restart("first", 'b');
  EXPECT(SCR_Current("lost") == SCR_SUCCESS); /* as where there never was one */
  expect_restart("first", 'b');
  EXPECT(dataset("lost", SCR_FLAG_CHECKPOINT, 'f', kLarge) != SCR_SUCCESS); /* still full */
  give_room_back();
  EXPECT(dataset("lost", SCR_FLAG_CHECKPOINT, 'g', kLarge) == SCR_SUCCESS);
  EXPECT(SCR_Finalize() == SCR_SUCCESS && SCR_Init() == SCR_SUCCESS);
  expect_restart("lost", 'g');
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT(SCR_Init() == SCR_SUCCESS);
  if (strcmp(argv[1], "begin") == 0) begin(); /* and ends without SCR_Finalize */
  if (strcmp(argv[1], "continue") == 0) {
    go_on();
    EXPECT(SCR_Finalize() == SCR_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
