/* A region of more than 2 GiB: its size, its far end. The memory is hardly touched, so that it
 * takes little room. */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "check.h"

static const uint64_t kBytes = (UINT64_C(9) << 28) + 12345; /* 2.25 GiB and a bit */
static const uint64_t kMarks[] = {0, (UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,
                                  (UINT64_C(9) << 28) + 12344};

static signed char* data;

static void write_version(diapause_t* diapause) {
  diapause_checkpoint_info info;
  for (int i = 0; i < 4; ++i) data[kMarks[i]] = (signed char)(i + 1);
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L1, &info));
  CHECK(info.bytes == kBytes);
}

static void read_version(diapause_t* diapause) {
  diapause_restart_info restarted;
  diapause_region_info info;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &restarted));
  CHECK(restarted.bytes == kBytes);
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_find(diapause, "data", &info));
  CHECK(info.count == kBytes && info.element_bytes == 1);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, NULL, 0));
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  for (int i = 0; i < 4; ++i) CHECK(data[kMarks[i]] == i + 1);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  void* memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (CHECK(memory != MAP_FAILED) &&
      CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "big", NULL, &diapause))) {
    data = memory;
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kBytes, DIAPAUSE_INT8));
    if (is_part("write")) write_version(diapause);
    if (is_part("read")) read_version(diapause);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
