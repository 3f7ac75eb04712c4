/* Calls MPI_Finalize while instances are open, with a version in flight, and it closes them. The
 * parts are "leaves", which forgets to close; "closes", which closes afterwards; "reads", the start
 * after that. */
#include <string.h>

#include "check.h"
#include "task.h"

enum { kCount = 500000 };

static unsigned char data[kCount], expected[kCount];

static diapause_t* open_one(const char* name) {
  diapause_t* diapause = NULL;
  CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, name, NULL, &diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kCount, DIAPAUSE_UINT8));
  return diapause;
}

static void read_both(void) {
  const char* const names[] = {"first", "second"};
  for (int i = 0; i < 2; ++i) {
    diapause_t* diapause = open_one(names[i]);
    diapause_restart_info info;
    fill(data, kCount, 77);
    CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &info));
    CHECK(info.version == 9 && info.level == 4);
    fill(expected, kCount, 1);
    CHECK(memcmp(data, expected, kCount) == 0);
    CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  }
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  if (is_part("reads")) {
    read_both();
    return end_checks();
  }
  fill(data, kCount, 1);
  diapause_t* first = open_one("first");
  diapause_t* second = open_one("second");
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(first, 9, DIAPAUSE_L4, NULL));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(second, 9, DIAPAUSE_L4, NULL));
  if (is_part("leaves")) return end_checks();
  const int status = end_checks(); /* calls MPI_Finalize */
  if (diapause_checkpoint(first, 10, DIAPAUSE_L1, NULL) != DIAPAUSE_ERR_OFF) return 10;
  if (diapause_close(second) != DIAPAUSE_OK) return 11;
  return diapause_close(first) == DIAPAUSE_OK ? status : 12;
}
