/* A restart without copying: a large table is used where it is stored, and a page is read from the
 * file when it is first touched. The program goes on at once while its data is verified in the
 * background. Before it uses the result it asks whether the data was sound. Run the program twice:
 * the first run stops half-way on purpose. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diapause/diapause.h"

enum { kCount = 1000000, kSteps = 100, kEvery = 10, kStopAt = 57 };

static uint64_t* table;

static int is_ok(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "mapped: %s\n", diapause_last_error());
  return status == DIAPAUSE_OK;
}

/* Maps `table` from the checkpoint and returns the step to continue after; 0: there is no
 * checkpoint. */
static uint64_t map_checkpoint(diapause_t* diapause) {
  diapause_restart_info restart;
  void* data = NULL;
  const int status =
      diapause_restart_mapped(diapause, DIAPAUSE_NEWEST, DIAPAUSE_CHECK_BEHIND, &restart);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  if (!is_ok(status) || !is_ok(diapause_map(diapause, "table", &data))) exit(2);
  is_ok(diapause_restart_end(diapause));
  table = data;
  printf("continuing after step %" PRIu64 "\n", restart.version);
  return restart.version;
}

/* Every step touches a hundredth of the table. */
static void compute(uint64_t step) {
  for (uint64_t k = (step - 1) * (kCount / kSteps); k < step * (kCount / kSteps); ++k)
    table[k] = k * k + step;
}

int main(void) {
  diapause_t* diapause = NULL;
  if (!is_ok(diapause_open("mapped", NULL, &diapause))) return 2;
  const uint64_t first = map_checkpoint(diapause);
  if (first == 0) table = calloc(kCount, sizeof *table);
  if (table == NULL) return 2;
  is_ok(diapause_protect(diapause, "table", table, kCount, DIAPAUSE_UINT64));

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    compute(step);
    if (step % kEvery == 0) is_ok(diapause_checkpoint(diapause, step, DIAPAUSE_L1, NULL));
    if (first == 0 && step == kStopAt) {
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3); /* like a crash: nothing is closed */
    }
  }

  /* Damage in the mapped data shows here at the latest. A new restart would take another copy or an
   * older version. */
  int wrong = !is_ok(diapause_scrub_wait(diapause));
  for (uint64_t k = 0; k < kCount; ++k) wrong |= table[k] != k * k + k / (kCount / kSteps) + 1;
  printf("%d numbers, %s\n", kCount, wrong ? "some wrong" : "all as they should be");

  is_ok(diapause_unprotect(diapause, "table"));
  if (first != 0) {
    is_ok(diapause_unmap(diapause, table));
  } else {
    free(table);
  }
  is_ok(diapause_finish(diapause));
  return wrong;
}
