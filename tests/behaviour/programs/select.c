/* A restart that first asks what is stored and how large it is, and then restores some regions and
 * not others. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "task.h"

enum { kSmall = 3 };

static size_t count_of(void) { return (size_t)(1000 + 7 * world_rank()); }

static void write_version(diapause_t* diapause) {
  double* field = allocate(count_of() * sizeof *field);
  int32_t counters[kSmall] = {1, 2, world_rank()};
  char text[40] = "what was";
  fill(field, count_of() * sizeof *field, 5);
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_protect(diapause, "field", field, count_of(), DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_protect(diapause, "counters", counters, kSmall, DIAPAUSE_INT32));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect_bytes(diapause, "text", text, 1, sizeof text));
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L1, NULL));
  free(field);
}

static void ask(diapause_t* diapause) {
  diapause_region_info info;
  CHECK(diapause_stored_count(diapause) == 3);
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_find(diapause, "field", &info));
  CHECK(info.type == DIAPAUSE_FLOAT64 && info.element_bytes == 8 && info.count == count_of());
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_find(diapause, "text", &info));
  CHECK(info.type == DIAPAUSE_BYTES && info.element_bytes == 40 && info.count == 1);
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_stored_find(diapause, "fields", &info));
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_at(diapause, 1, &info));
  CHECK(strcmp(info.name, "counters") == 0);
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_stored_at(diapause, 3, &info));
}

static void read_version(diapause_t* diapause) {
  diapause_restart_info restarted;
  diapause_region_info info;
  CHECK(diapause_stored_count(diapause) < 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_begin(diapause, DIAPAUSE_NEWEST, &restarted));
  ask(diapause);
  CHECK_STATUS(DIAPAUSE_OK, diapause_stored_find(diapause, "field", &info));
  double *field = allocate(info.count * 8), *expected = allocate(info.count * 8);
  int32_t counters[kSmall] = {0};
  fill(expected, info.count * 8, 5);
  memset(field, 0, info.count * 8);
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_protect(diapause, "field", field, info.count, DIAPAUSE_FLOAT64));
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_protect(diapause, "counters", counters, kSmall, DIAPAUSE_INT32));

  /* Even ranks want one region, odd ranks another, and what they do not want stays as it is. */
  const bool even = world_rank() % 2 == 0;
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_restore(diapause, (const char*[]){even ? "counters" : "field"}, 1));
  CHECK((counters[1] == 2) == even);
  CHECK((memcmp(field, expected, info.count * 8) == 0) == !even);
  CHECK_STATUS(DIAPAUSE_ERR_NOT_FOUND, diapause_restore(diapause, (const char*[]){"text"}, 1));
  CHECK_SAYS("text");
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, (const char*[]){"counters", "field"}, 2));
  CHECK(counters[2] == world_rank());
  CHECK(memcmp(field, expected, info.count * 8) == 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  CHECK(diapause_stored_count(diapause) < 0);
  free(field);
  free(expected);
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  diapause_t* diapause = NULL;
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "select", NULL, &diapause))) {
    if (is_part("write")) write_version(diapause);
    if (is_part("read")) read_version(diapause);
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
