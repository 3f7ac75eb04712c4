/* Regions that are used where they are stored: writes stay with the program, checkpoints go on,
 * damage is told. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "task.h"

enum { kBytes = 3000000 };

static unsigned char* data;
static diapause_t* diapause;

static bool holds(uint64_t version) {
  unsigned char* expected = allocate(kBytes);
  fill(expected, kBytes, version * 100 + (uint64_t)world_rank());
  const bool same = memcmp(data, expected, kBytes) == 0;
  free(expected);
  return same;
}

static void checkpoint(uint64_t version, int level) {
  fill(data, kBytes, version * 100 + (uint64_t)world_rank());
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, version, level, NULL));
}

static void map(int check, uint64_t version) {
  diapause_restart_info info;
  void* mapped = NULL;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_mapped(diapause, DIAPAUSE_NEWEST, check, &info));
  CHECK(info.version == version);
  CHECK_STATUS(DIAPAUSE_OK, diapause_map(diapause, "data", &mapped));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  data = mapped;
}

/* Mapped memory is the program's: it computes and takes checkpoints there, and maps those in turn.
 */
static void go_on(int check, uint64_t version, int level) {
  map(check, version);
  CHECK(holds(version));
  CHECK_STATUS(DIAPAUSE_OK, diapause_scrub_wait(diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kBytes, DIAPAUSE_UINT8));
  unsigned char* const first = data;
  for (uint64_t next = version + 1; next <= version + 5; ++next) checkpoint(next, level);
  map(check, version + 5);
  unsigned char* const second = data;
  data = first;
  for (uint64_t next = version + 6; next <= version + 10; ++next) checkpoint(next, level);
  data = second;
  CHECK(holds(version + 5)); /* though this process wrote that file and has given the version up */
  memset(data, 0, kBytes);
  CHECK_STATUS(DIAPAUSE_OK, diapause_unmap(diapause, data));
  data = first;
  CHECK(holds(version + 10));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_unmap(diapause, NULL));
}

static void find_damage(void) {
  map(DIAPAUSE_CHECK_BEHIND, 1);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kBytes, DIAPAUSE_UINT8));
  CHECK_STATUS(DIAPAUSE_ERR_CORRUPT, diapause_scrub_wait(diapause));
  CHECK_SAYS("region 'data'");
  CHECK_STATUS(DIAPAUSE_ERR_CORRUPT, diapause_checkpoint(diapause, 2, DIAPAUSE_L1, NULL));
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_restart(diapause, DIAPAUSE_NEWEST, NULL)); /* from the global tier */
  CHECK(holds(1));
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  const int level = argc > 2 ? argv[2][0] - '0' : 1;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "mapped", NULL, &diapause))) {
    if (is_part("write")) {
      data = allocate(kBytes);
      CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kBytes, DIAPAUSE_UINT8));
      checkpoint(1, level);
    }
    if (is_part("first")) go_on(DIAPAUSE_CHECK_FIRST, 1, level);
    if (is_part("behind")) go_on(DIAPAUSE_CHECK_BEHIND, 1, level);
    if (is_part("damaged")) find_damage();
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  if (is_part("write")) free(data);
  return end_checks();
}
