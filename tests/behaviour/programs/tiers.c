/* Tiers that cannot be used, from the beginning or in the middle of a run: the levels that do not
 * need them go on. */
#include <string.h>

#include "check.h"
#include "task.h"

enum { kWords = 30000 };

static uint64_t words[kWords];
static diapause_t* diapause;

static void compute(uint64_t version) {
  fill(words, sizeof words, version * 100 + (uint64_t)world_rank());
}

static void checkpoint(uint64_t version, int level, int status, int reached) {
  diapause_checkpoint_info info;
  compute(version);
  CHECK_STATUS(status, diapause_checkpoint(diapause, version, level, &info));
  CHECK(info.level_reached == reached);
  CHECK(info.level_asked == level);
}

static void expect(uint64_t version) {
  diapause_restart_info info;
  uint64_t first;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &info));
  CHECK(info.version == version);
  fill(&first, sizeof first, version * 100 + (uint64_t)world_rank());
  CHECK(words[0] == first);
}

static void without_memory_tier(void) {
  checkpoint(1, DIAPAUSE_L1, DIAPAUSE_ERR_IO, 0);
  CHECK_SAYS("not-a-directory");
  checkpoint(2, DIAPAUSE_L2, DIAPAUSE_ERR_IO, 0);
  checkpoint(3, DIAPAUSE_L3, DIAPAUSE_ERR_IO, 0);
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  checkpoint(4, DIAPAUSE_L4, DIAPAUSE_ERR_IO, 4); /* there, but without its level 1 */
  checkpoint(5, DIAPAUSE_L1, DIAPAUSE_ERR_IO, 0);
  expect(4);
}

static void without_global_tier(void) {
  checkpoint(1, DIAPAUSE_L4, DIAPAUSE_ERR_IO, 1);
  CHECK_SAYS("not-a-directory");
  expect(1);
  checkpoint(2, DIAPAUSE_L2, DIAPAUSE_OK, 2);
  checkpoint(3, DIAPAUSE_L3, DIAPAUSE_OK, 3);
  checkpoint(4, DIAPAUSE_L1, DIAPAUSE_OK, 1);
  expect(4);
}

/* Between the files the driver takes the global directory away, and gives it back. */
static void with_global_tier_lost_and_found(void) {
  checkpoint(1, DIAPAUSE_L4, DIAPAUSE_OK, 4);
  MPI_Barrier(MPI_COMM_WORLD);
  make_file("take-away");
  if (!wait_for_file("taken-away")) return;
  checkpoint(2, DIAPAUSE_L4, DIAPAUSE_ERR_IO, 1);
  checkpoint(3, DIAPAUSE_L2, DIAPAUSE_OK, 2);
  checkpoint(4, DIAPAUSE_L4, DIAPAUSE_ERR_DENIED, 1); /* a file is where the directory was */
  expect(4);
  MPI_Barrier(MPI_COMM_WORLD);
  make_file("give-back");
  if (!wait_for_file("given-back")) return;
  checkpoint(5, DIAPAUSE_L4, DIAPAUSE_OK, 4);
  expect(5);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "tiers", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "words", words, kWords, DIAPAUSE_UINT64));
    if (is_part("without-memory")) without_memory_tier();
    if (is_part("without-global")) without_global_tier();
    if (is_part("global-lost")) with_global_tier_lost_and_found();
    if (is_part("read-4")) expect(4);
    if (is_part("read-5")) expect(5);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
