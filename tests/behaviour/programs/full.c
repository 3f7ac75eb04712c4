/* A tier that fills up: the last good version stays, nothing has to be called, and with room it
 * goes on by itself. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "task.h"

static unsigned char* data;
static size_t count;
static diapause_t* diapause;

static void resize(size_t bytes, uint64_t version) {
  free(data);
  data = allocate(bytes);
  count = bytes;
  fill(data, count, version);
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, count, DIAPAUSE_UINT8));
}

static void checkpoint(uint64_t version, int level, int status, int reached) {
  diapause_checkpoint_info info;
  CHECK_STATUS(status, diapause_checkpoint(diapause, version, level, &info));
  CHECK(info.level_reached == reached);
}

static void expect(uint64_t version, size_t bytes) {
  diapause_restart_info info;
  resize(bytes, 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &info));
  CHECK(info.version == version);
  CHECK(info.stepped_back == 0);
  unsigned char* expected = allocate(bytes);
  fill(expected, bytes, version);
  CHECK(memcmp(data, expected, bytes) == 0);
  free(expected);
}

/* Somebody else's file takes nearly all the room there is. */
static void take_room(const char* path) {
  if (world_rank() == 0) {
    const int file = open(path, O_CREAT | O_WRONLY, 0600);
    static unsigned char block[65536];
    while (file >= 0 && write(file, block, sizeof block) > 0) continue;
    close(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void give_room_back(const char* path) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) unlink(path);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* argv[2]: a file in the tier's file system; the tier has about 24 MB and each of two ranks stores
 * up to 4 MB. */
static void fill_up(const char* filler, int level, int reached_when_full) {
  const size_t small = 1000000, large = 4000000;
  resize(small, 1);
  checkpoint(1, level, DIAPAUSE_OK, level);
  take_room(filler);
  resize(large, 2);
  checkpoint(2, level, DIAPAUSE_ERR_FULL, reached_when_full);
  CHECK_SAYS("full");
  if (reached_when_full == 0) expect(1, small);
  resize(large, 3);
  checkpoint(3, level, DIAPAUSE_ERR_FULL, reached_when_full);
  give_room_back(filler);
  checkpoint(3, level, DIAPAUSE_OK, level);
  expect(3, large);
  resize(large, 4);
  checkpoint(4, level, DIAPAUSE_OK, level);
  expect(4, large);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "full", NULL, &diapause))) {
    if (is_part("memory") && argc > 2) fill_up(argv[2], DIAPAUSE_L1, 0);
    if (is_part("global") && argc > 2) fill_up(argv[2], DIAPAUSE_L4, 1);
    if (is_part("read")) expect(4, 4000000);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  free(data);
  return end_checks();
}
