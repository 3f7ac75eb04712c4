/* A solver whose versions consist of its own files alone: files_solver NAME LEVEL STEPS RESULT. It
 * has a file of its state, one of 0 bytes, and a field in a subdirectory whose size changes; every
 * byte of them counts in the result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diapause/diapause_mpi.h"

enum { kEvery = 5, kMost = 40000 };

static int rank;
static uint64_t state;
static uint64_t field[kMost];

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "files_solver: rank %d: not so: %s (%s)\n", rank, what, diapause_last_error());
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static uint64_t cells_at(uint64_t step) { return (step * 1237 + (uint64_t)rank * 5113) % kMost; }

/* The field of a step is what the state makes of its places. */
static uint64_t cell(uint64_t place) { return (state ^ place) * 0x9E3779B97F4A7C15u; }

static void advance(uint64_t step) {
  uint64_t sum = 0;
  state = (state + step + (uint64_t)rank) * 6364136223846793005u + 1442695040888963407u;
  MPI_Allreduce(&state, &sum, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  state ^= sum >> 7;
  for (uint64_t i = 0; i < cells_at(step); ++i) field[i] = cell(i);
}

static FILE* open_in(const char* directory, const char* name, const char* mode) {
  char path[1100];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return fopen(path, mode);
}

static int save(const char* directory, uint64_t step) {
  char deep[1100];
  snprintf(deep, sizeof deep, "%s/deep", directory);
  if (mkdir(deep, 0700) != 0) return 0;
  FILE* const files[] = {open_in(directory, "state", "w"), open_in(directory, "empty", "w"),
                         open_in(directory, "deep/field", "w")};
  int is_written = 1;
  for (int i = 0; i < 3; ++i) is_written = is_written && files[i] != NULL;
  if (!is_written) return 0;
  is_written =
      fprintf(files[0], "%llu %llu\n", (unsigned long long)step, (unsigned long long)state) > 0 &&
      fwrite(field, sizeof *field, cells_at(step), files[2]) == cells_at(step);
  for (int i = 0; i < 3; ++i) is_written = fclose(files[i]) == 0 && is_written;
  return is_written;
}

static uint64_t load(const char* directory) {
  unsigned long long step = 0, stored = 0;
  FILE* const files[] = {open_in(directory, "state", "r"), open_in(directory, "empty", "r"),
                         open_in(directory, "deep/field", "r")};
  for (int i = 0; i < 3; ++i) expect(files[i] != NULL, "each file is there");
  expect(fscanf(files[0], "%llu %llu", &step, &stored) == 2, "the state can be read");
  state = stored;
  expect(fgetc(files[1]) == EOF, "the empty file is empty");
  expect(fread(field, sizeof *field, cells_at(step), files[2]) == cells_at(step) &&
             fgetc(files[2]) == EOF,
         "the field has its size");
  for (uint64_t i = 0; i < cells_at(step); ++i) expect(field[i] == cell(i), "a cell is right");
  for (int i = 0; i < 3; ++i) fclose(files[i]);
  return step;
}

static uint64_t restart(diapause_t* diapause) {
  diapause_restart_info info;
  const char* directory;
  const int status = diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  expect(status == DIAPAUSE_OK, "there are checkpoints, and one can be had");
  expect(diapause_restore_files(diapause, &directory) == DIAPAUSE_OK, "the files are there");
  const uint64_t step = load(directory);
  expect(step == info.version, "the files are those of the version");
  expect(diapause_restart_end(diapause) == DIAPAUSE_OK, "the restart ends");
  return step;
}

int main(int argc, char** argv) {
  int provided;
  const char* directory;
  diapause_t* diapause = NULL;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(argc == 5, "four arguments are given");
  const int level = atoi(argv[2]);
  const uint64_t steps = strtoull(argv[3], NULL, 10);
  expect(diapause_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &diapause) == DIAPAUSE_OK, "it opens");
  for (uint64_t step = restart(diapause); step < steps;) {
    advance(++step);
    if (step % kEvery != 0) continue;
    expect(diapause_files(diapause, &directory) == DIAPAUSE_OK, "there is a directory");
    expect(diapause_checkpoint_files(diapause, step, level, save(directory, step), NULL) ==
               DIAPAUSE_OK,
           "a checkpoint is taken");
  }
  uint64_t sum = 0;
  MPI_Reduce(&state, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  FILE* const result = rank == 0 ? fopen(argv[4], "w") : NULL;
  if (rank == 0) {
    expect(result != NULL && fprintf(result, "%llu\n", (unsigned long long)sum) > 0 &&
               fclose(result) == 0,
           "the result is written");
  }
  expect(diapause_close(diapause) == DIAPAUSE_OK, "it closes");
  MPI_Finalize();
  return 0;
}
