/* A program in a control group that has hardly more memory than the program and its checkpoints
 * need: whatever cannot be kept is told, and nobody is killed.
 *
 * limited write|read MIB LEVEL VERSIONS */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "task.h"

/* A version that finds no room is an error of its call, and the program goes on. */
static void take_versions(diapause_t* diapause, unsigned char* data, size_t bytes, int level,
                          uint64_t versions) {
  for (uint64_t version = 1; version <= versions; ++version) {
    memset(data, (int)version, bytes);
    const int status = diapause_checkpoint(diapause, version, level, NULL);
    CHECK(status == DIAPAUSE_OK || status == DIAPAUSE_ERR_FULL);
    if (status == DIAPAUSE_OK) (void)diapause_wait(diapause, version, level, 60);
  }
}

static void go_on(diapause_t* diapause, unsigned char* data, size_t bytes, int level) {
  diapause_restart_info info;
  if (!CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &info))) return;
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += data[i] != info.version;
  CHECK(wrong == 0);
  /* Files that were lost are put back behind the program, or it is told that there is no room for
   * them. */
  (void)diapause_wait(diapause, info.version, level, 60);
  (void)diapause_snapshot(diapause, info.version + 1, NULL);
}

int main(int argc, char** argv) {
  diapause_t* diapause;
  begin_checks(&argc, &argv);
  if (argc != 5) return 2;
  const size_t bytes = strtoul(argv[2], NULL, 10) << 20;
  const int level = atoi(argv[3]);
  unsigned char* data = allocate(bytes);
  memset(data, 0, bytes);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "limited", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, bytes, DIAPAUSE_UINT8));
    if (is_part("write")) take_versions(diapause, data, bytes, level, strtoul(argv[4], NULL, 10));
    if (is_part("read")) go_on(diapause, data, bytes, level);
    (void)diapause_close(diapause); /* a failure of the background does not count here */
  }
  free(data);
  return end_checks();
}
