/* Tests what VELOC's functions promise, by a process of its own. The first argument is the
 * configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "expect.h"
#include "veloc.h"

enum { kCount = 1000 };

static double* filled(double value) {
  double* const values = malloc(kCount * sizeof *values);
  for (int i = 0; i < kCount; ++i) values[i] = value + i;
  return values;
}

static int is_filled(const double* values, double value) {
  for (int i = 0; i < kCount; ++i) {
    if (values[i] != value + i) return 0;
  }
  return 1;
}

static void memory_may_be_freed_and_registered_anew(void) {
  double* field = filled(1);
  EXPECT(VELOC_Mem_protect(1, field, kCount, sizeof *field) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("moving", 1) == VELOC_SUCCESS);
  free(field);
  field = filled(2);
  EXPECT(VELOC_Mem_protect(1, field, kCount, sizeof *field) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("moving", 2) == VELOC_SUCCESS);
  memset(field, 0, kCount * sizeof *field);
  EXPECT(VELOC_Restart_test("moving", 0) == 2);
  EXPECT(VELOC_Restart("moving", 2) == VELOC_SUCCESS);
  EXPECT(is_filled(field, 2));
  EXPECT(VELOC_Restart("moving", 1) == VELOC_SUCCESS);
  EXPECT(is_filled(field, 1));
  free(field);
  EXPECT(VELOC_Mem_unprotect(1) == VELOC_SUCCESS);
  EXPECT(VELOC_Mem_unprotect(1) == VELOC_FAILURE);
}

static void regions_are_selected(void) {
  double* const first = filled(10);
  double* const second = filled(20);
  int ids[] = {2};
  VELOC_Mem_protect(1, first, kCount, sizeof *first);
  VELOC_Mem_protect(2, second, kCount, sizeof *second);
  EXPECT(VELOC_Checkpoint_begin("parts", 5) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, ids, 1) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_end(1) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("parts", 6) == VELOC_SUCCESS);
  first[0] = second[0] = -1;

  EXPECT(VELOC_Restart_begin("parts", 5) == VELOC_SUCCESS);
  EXPECT(VELOC_Recover_size(1) == 0);
  EXPECT(VELOC_Recover_size(2) == kCount * (int)sizeof *second);
  EXPECT(VELOC_Recover_mem() == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_end(1) == VELOC_SUCCESS);
  EXPECT(first[0] == -1 && is_filled(second, 20));

  second[0] = -1;
  EXPECT(VELOC_Restart_begin("parts", 6) == VELOC_SUCCESS);
  EXPECT(VELOC_Recover_selective(VELOC_RECOVER_REST, ids, 1) == VELOC_SUCCESS);
  EXPECT(is_filled(first, 10) && second[0] == -1);
  EXPECT(VELOC_Recover_selective(VELOC_RECOVER_SOME, ids, 1) == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_end(1) == VELOC_SUCCESS);
  EXPECT(is_filled(second, 20));
  EXPECT(VELOC_Mem_clear() == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("parts", 7) == VELOC_FAILURE); /* nothing is protected */
  EXPECT(VELOC_Checkpoint_end(1) == VELOC_FAILURE);
  EXPECT(VELOC_Checkpoint_begin("parts", 7) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_mem() == VELOC_FAILURE);
  EXPECT(VELOC_Checkpoint_end(0) == VELOC_SUCCESS); /* as programs withdraw it then */
  free(first);
  free(second);
}

static void regions_of_a_name_go_with_its_checkpoints(void) {
  double* const mine = filled(1);
  double* const other = filled(2);
  VELOC_Region_protect(1, mine, kCount, sizeof *mine, "mine");
  VELOC_Mem_protect(2, other, kCount, sizeof *other);
  EXPECT(VELOC_Checkpoint("mine", 0) == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_wait() == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_finished() == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_begin("mine", 0) == VELOC_SUCCESS);
  EXPECT(VELOC_Recover_size(1) > 0 && VELOC_Recover_size(2) == 0);
  EXPECT(VELOC_Restart_end(1) == VELOC_SUCCESS);
  EXPECT(VELOC_Region_unprotect(1, "mine") == VELOC_SUCCESS);
  EXPECT(VELOC_Region_clear("mine") == VELOC_SUCCESS);
  EXPECT(VELOC_Mem_clear() == VELOC_SUCCESS);
  free(mine);
  free(other);
}

static void memory_may_be_larger_than_what_is_stored_and_not_smaller(void) {
  double* const field = filled(3);
  double* const larger = calloc(kCount + 1, sizeof *larger);
  VELOC_Mem_protect(1, field, kCount, sizeof *field);
  EXPECT(VELOC_Checkpoint("some-sizes", 1) == VELOC_SUCCESS);
  VELOC_Mem_protect(1, larger, kCount + 1, sizeof *larger);
  EXPECT(VELOC_Restart("some-sizes", 1) == VELOC_SUCCESS);
  EXPECT(is_filled(larger, 3) && larger[kCount] == 0);
  memset(larger, 0, kCount * sizeof *larger);
  VELOC_Mem_protect(1, larger, kCount - 1, sizeof *larger);
  EXPECT(VELOC_Restart("some-sizes", 1) == VELOC_FAILURE);
  EXPECT(larger[0] == 0);
  EXPECT(VELOC_Restart_end(0) == VELOC_SUCCESS);
  VELOC_Mem_clear();
  free(field);
  free(larger);
}

static void the_newest_at_or_below_a_number_is_found(void) {
  int step;
  VELOC_Mem_protect(1, &step, 1, sizeof step);
  EXPECT(VELOC_Restart_test("steps", 0) == -1);
  for (step = 10; step <= 40; step += 10) EXPECT(VELOC_Checkpoint("steps", step) == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_test("steps", 0) == 40);
  EXPECT(VELOC_Restart_test("steps", 39) == 30);
  EXPECT(VELOC_Restart_test("steps", 20) == 20);
  EXPECT(VELOC_Restart_test("steps", 9) == -1);
  EXPECT(VELOC_Restart("steps", 25) == VELOC_FAILURE);
  EXPECT(VELOC_Restart("steps", 30) == VELOC_SUCCESS && step == 30);
  EXPECT(VELOC_Checkpoint("no/name", 1) == VELOC_FAILURE);
  EXPECT(VELOC_Checkpoint("steps", -1) == VELOC_FAILURE);
  EXPECT(VELOC_Cleanup("steps") == VELOC_SUCCESS);
  VELOC_Mem_clear();
}

/* A region that is refused is not protected, and a checkpoint that could not even be begun is not
 * waited for. */
static void what_is_refused_harms_nothing_else(void) {
  static const char too_long[] =
      "a-name-of-more-than-the-64-bytes-that-the-name-of-a-job-may-have-at-most";
  int step = 3;
  EXPECT(VELOC_Mem_protect(1, &step, 1, sizeof step) == VELOC_SUCCESS);
  EXPECT(VELOC_Mem_protect(2, &step, (size_t)-1, sizeof step) == VELOC_FAILURE);
  EXPECT(VELOC_Mem_protect(3, NULL, 1, sizeof step) == VELOC_FAILURE);
  EXPECT(VELOC_Checkpoint(too_long, 1) == VELOC_FAILURE);
  EXPECT(VELOC_Restart_test(too_long, 0) == -1);
  EXPECT(VELOC_Checkpoint_wait() == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint_finished() == VELOC_SUCCESS);
  EXPECT(VELOC_Checkpoint("sound", 1) == VELOC_SUCCESS && VELOC_Restart_test("sound", 0) == 1);
  VELOC_Mem_clear();
}

/* What was there before a mistake is gone, too. */
static void a_region_that_cannot_be_read_is_not_protected(void) {
  int step = 3;
  const size_t bytes = kCount * sizeof(double);
  double* const field =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(field != MAP_FAILED);
  VELOC_Mem_protect(1, field, kCount, sizeof *field);
  VELOC_Mem_protect(2, &step, 1, sizeof step);
  EXPECT(VELOC_Checkpoint("mistaken", 1) == VELOC_SUCCESS);
  VELOC_Mem_protect(1, (void*)16, kCount, sizeof *field);
  EXPECT(VELOC_Checkpoint("mistaken", 2) == VELOC_FAILURE);
  EXPECT(VELOC_Mem_unprotect(1) == VELOC_SUCCESS && munmap(field, bytes) == 0);
  EXPECT(VELOC_Checkpoint("mistaken", 3) == VELOC_SUCCESS);
  EXPECT(VELOC_Restart_test("mistaken", 0) == 3);
  VELOC_Mem_clear();
}

/* The classic mistake is to write to the name that was routed, and not to the path. */
static void a_file_that_was_not_written_is_no_checkpoint(void) {
  for (int version = 1; version <= 3; ++version) {
    char path[VELOC_MAX_NAME];
    EXPECT(VELOC_Checkpoint_begin("routed", version) == VELOC_SUCCESS);
    EXPECT(VELOC_Route_file("data", path) == VELOC_SUCCESS);
    FILE* const file = version == 2 ? NULL : fopen(path, "w");
    EXPECT(version == 2 || (file != NULL && fputs("data", file) >= 0 && fclose(file) == 0));
    EXPECT(VELOC_Checkpoint_end(1) == (version == 2 ? VELOC_FAILURE : VELOC_SUCCESS));
    EXPECT(VELOC_Restart_test("routed", 0) == (version == 2 ? 1 : version));
  }
}

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  EXPECT(VELOC_Checkpoint("early", 1) == VELOC_FAILURE);
  EXPECT(VELOC_Init_single(7, "there/is/no/such/file") == VELOC_FAILURE);
  EXPECT(VELOC_Init_single(7, argv[1]) == VELOC_SUCCESS);
  memory_may_be_freed_and_registered_anew();
  regions_are_selected();
  regions_of_a_name_go_with_its_checkpoints();
  memory_may_be_larger_than_what_is_stored_and_not_smaller();
  the_newest_at_or_below_a_number_is_found();
  what_is_refused_harms_nothing_else();
  a_region_that_cannot_be_read_is_not_protected();
  a_file_that_was_not_written_is_no_checkpoint();
  EXPECT(VELOC_Finalize(1) == VELOC_SUCCESS);
  EXPECT(VELOC_Finalize(1) == VELOC_FAILURE);
  return 0;
}
