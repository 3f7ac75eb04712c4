/* Bits flipped on purpose: a checkpoint stores memory as it is, right or wrong. */
#include <string.h>

#include "check.h"
#include "task.h"

enum { kWords = 50000 };

static uint64_t words[kWords], before[kWords];

static int bits_changed(void) {
  int changed = 0;
  for (int i = 0; i < kWords; ++i) changed += __builtin_popcountll(words[i] ^ before[i]);
  return changed;
}

static void flip_one(diapause_t* diapause) {
  CHECK_STATUS(DIAPAUSE_OK, diapause_inject_bit_flip(diapause, "words", 4711, 62));
  CHECK(words[4711] == (before[4711] ^ UINT64_C(1) << 62));
  CHECK(bits_changed() == 1);
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_inject_bit_flip(diapause, "words", kWords, 0));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_inject_bit_flip(diapause, "words", 0, 64));
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_inject_bit_flip(diapause, "word", 0, 0));
}

/* The configuration says bit 5, two at a time, seven in all, in 'words' only. */
static void flip_by_schedule(diapause_t* diapause) {
  static uint64_t spared[kWords];
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "spared", spared, kWords, DIAPAUSE_UINT64));
  for (uint64_t call = 1; call <= 100; ++call) {
    const double start_s = MPI_Wtime();
    while (MPI_Wtime() - start_s < 0.001) continue;
    CHECK_STATUS(DIAPAUSE_OK, diapause_snapshot(diapause, call, NULL));
  }
  CHECK(bits_changed() == 7);
  for (int i = 0; i < kWords; ++i) {
    CHECK(((words[i] ^ before[i]) & ~(UINT64_C(1) << 5)) == 0);
    CHECK(spared[i] == 0);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_unprotect(diapause, "spared"));
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  fill(words, sizeof words, (uint64_t)world_rank());
  memcpy(before, words, sizeof words);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "flip", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "words", words, kWords, DIAPAUSE_UINT64));
    if (is_part("one")) flip_one(diapause);
    if (is_part("schedule")) flip_by_schedule(diapause);
    memcpy(before, words, sizeof words);
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1000, DIAPAUSE_L2, NULL));
    memset(words, 0, sizeof words);
    CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
    CHECK(bits_changed() == 0);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
