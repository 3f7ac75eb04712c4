/* The same version number taken again with less data, at every level: nothing of the longer one is
 * left in it. */
#include <string.h>

#include "check.h"
#include "task.h"

enum { kMost = 2000000, kFew = 1234 };

static unsigned char data[kMost], expected[kMost];

static void take(diapause_t* diapause, uint64_t number, int level, size_t count, uint64_t seed) {
  fill(data, count, seed);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, count, DIAPAUSE_UINT8));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, number, level, NULL));
}

static void read_short(diapause_t* diapause) {
  diapause_restart_info restarted;
  diapause_region_info info;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &restarted));
  CHECK(restarted.version == 5);
  CHECK(restarted.bytes == kFew);
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_find(diapause, "data", &info));
  CHECK(info.count == kFew);
  memset(data, 'x', sizeof data);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kFew, DIAPAUSE_UINT8));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, NULL, 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  memset(expected, 'x', sizeof expected);
  fill(expected, kFew, 2);
  CHECK(memcmp(data, expected, sizeof data) == 0);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  const int level = argc > 2 ? argv[2][0] - '0' : 1;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "again", NULL, &diapause))) {
    if (is_part("write")) {
      take(diapause, 5, level, kMost, 1);
      take(diapause, 5, level, kFew, 2);
    }
    read_short(diapause);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
