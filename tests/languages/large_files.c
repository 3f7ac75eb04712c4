/* Files as content of a version, thousands of them and one of more than 2 GiB, most of which is a
 * hole: large_files CONFIGURATION write LEVEL | read. The first rank has the large file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diapause/diapause_mpi.h"

enum { kDirectories = 30, kFilesOfEach = 100 };
static const off_t kLarge = ((off_t)2 << 30) + (4 << 20) + 7;
static int rank;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: not so: %s (%s)\n", rank, what, diapause_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Texts at the beginning, around 2 GiB, and at the end of the large file. */
static off_t mark_at(int i) {
  const off_t places[] = {0, ((off_t)2 << 30) - 5, (off_t)2 << 30, kLarge - 9};
  return places[i];
}

static void open_large(const char* directory, int is_writing) {
  char path[1000], mark[16], found[16] = "";
  struct stat state;
  snprintf(path, sizeof path, "%s/large", directory);
  const int file = open(path, is_writing ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY, 0600);
  expect(file >= 0, "the large file is there");
  if (is_writing) expect(ftruncate(file, kLarge) == 0, "it has its size");
  expect(fstat(file, &state) == 0 && state.st_size == kLarge, "it has that size");
  for (int i = 0; i < 4; ++i) {
    const size_t bytes = (size_t)snprintf(mark, sizeof mark, "<%d>", i);
    if (is_writing)
      expect(pwrite(file, mark, bytes, mark_at(i)) == (ssize_t)bytes, "a mark is written");
    expect(pread(file, found, bytes, mark_at(i)) == (ssize_t)bytes && !memcmp(found, mark, bytes),
           "a mark is there");
  }
  expect(pread(file, found, 1, (off_t)1 << 30) == 1 && found[0] == '\0', "the rest is zero");
  close(file);
}

static void open_small(const char* directory, int is_writing) {
  char path[1000], wanted[100], found[100];
  for (int i = 0; i < kDirectories; ++i) {
    snprintf(path, sizeof path, "%s/%d", directory, i);
    if (is_writing) expect(mkdir(path, 0700) == 0, "a directory is made");
    for (int j = 0; j < kFilesOfEach; ++j) {
      snprintf(path, sizeof path, "%s/%d/file.%d", directory, i, j);
      const int bytes = j == 0 ? 0 : snprintf(wanted, sizeof wanted, "%d %d %d", rank, i, j);
      FILE* const file = fopen(path, is_writing ? "w" : "r");
      expect(file != NULL, "a file is there");
      if (is_writing) {
        expect(fwrite(wanted, 1, (size_t)bytes, file) == (size_t)bytes, "it is written");
      } else {
        expect(fread(found, 1, sizeof found, file) == (size_t)bytes &&
                   memcmp(found, wanted, (size_t)bytes) == 0,
               "it has what was written");
      }
      expect(fclose(file) == 0, "it is closed");
    }
  }
}

int main(int argc, char** argv) {
  int provided;
  diapause_t* diapause = NULL;
  const char* directory;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(diapause_mpi_open(MPI_COMM_WORLD, "large", argv[1], &diapause) == DIAPAUSE_OK, "opened");
  const int is_writing = strcmp(argv[2], "write") == 0;
  if (is_writing) {
    const int level = atoi(argv[3]);
    expect(diapause_files(diapause, &directory) == DIAPAUSE_OK, "there is a directory");
    if (rank == 0) open_large(directory, 1);
    open_small(directory, 1);
    expect(diapause_checkpoint_files(diapause, 1, level, 1, NULL) == DIAPAUSE_OK, "it is taken");
    expect(diapause_wait(diapause, 1, level, 1000) == DIAPAUSE_OK, "it holds");
  } else {
    expect(diapause_restart_begin(diapause, 1, NULL) == DIAPAUSE_OK, "it is found");
    expect(diapause_restore_files(diapause, &directory) == DIAPAUSE_OK, "the files are there");
    if (rank == 0) open_large(directory, 0);
    open_small(directory, 0);
    expect(diapause_restart_end(diapause) == DIAPAUSE_OK, "the restart ends");
  }
  expect(diapause_close(diapause) == DIAPAUSE_OK, "closed");
  MPI_Finalize();
  return 0;
}
