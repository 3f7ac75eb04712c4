/* A program that writes its own files, with HDF5 or any other library: the files are the
 * checkpoint. Run the program twice: the first run stops half-way on purpose, the second continues
 * from the last files and finishes. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "diapause/diapause.h"

static int tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "files: %s\n", diapause_last_error());
  return status;
}

/* Saves the state as the program did before it used Diapause. Returns whether the files are
 * complete. */
static int save(const char* directory, uint64_t step, uint64_t sum) {
  char path[1000];
  snprintf(path, sizeof path, "%s/state.txt", directory);
  FILE* const file = fopen(path, "w");
  if (file == NULL) return 0;
  const int is_written = fprintf(file, "%" PRIu64 " %" PRIu64 "\n", step, sum) > 0;
  return fclose(file) == 0 && is_written;
}

static int load(const char* directory, uint64_t* step, uint64_t* sum) {
  char path[1000];
  snprintf(path, sizeof path, "%s/state.txt", directory);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  const int is_read = fscanf(file, "%" SCNu64 " %" SCNu64, step, sum) == 2;
  return fclose(file) == 0 && is_read;
}

int main(void) {
  enum { kSteps = 100, kEvery = 10, kStopAt = 57 };
  uint64_t sum = 0, first = 0;
  const char* directory;

  diapause_t* diapause = NULL;
  tell(diapause_open("files", NULL, &diapause));

  diapause_restart_info restart;
  const int status = diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &restart);
  if (status == DIAPAUSE_OK) {
    if (tell(diapause_restore_files(diapause, &directory)) != DIAPAUSE_OK ||
        !load(directory, &first, &sum))
      return 2;
    tell(diapause_restart_end(diapause)); /* this removes the directory */
    printf("continuing after step %" PRIu64 "\n", first);
  } else if (status != DIAPAUSE_ERR_NOT_FOUND) {
    tell(status); /* there are checkpoints: to begin anew would lose them */
    return 2;
  }

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    sum += step;
    if (step % kEvery == 0 && tell(diapause_files(diapause, &directory)) == DIAPAUSE_OK) {
      const int is_complete = save(directory, step, sum);
      tell(diapause_checkpoint_files(diapause, step, DIAPAUSE_L4, is_complete, NULL));
    }
    if (first == 0 && step == kStopAt) {
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3); /* like a crash: nothing is closed */
    }
  }

  printf("1 + ... + %d = %" PRIu64 "\n", kSteps, sum);
  tell(diapause_finish(diapause)); /* done: the next run begins anew */
  return sum == kSteps * (kSteps + 1) / 2 ? 0 : 1;
}
