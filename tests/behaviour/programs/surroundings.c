/* Processes of an unusual kind: "child" forks, and the child uses the instance; "floats" has the
 * processor round upwards and trap; "streams" has no standard streams; "shortened" protects a
 * mapped file that becomes shorter; "cut" loses what its checkpoints have in memory to something
 * that empties files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "task.h"

enum { kCount = 300000 };

static unsigned char data[kCount], expected[kCount];
static diapause_t* diapause;

static void open_one(void) {
  CHECK_STATUS(DIAPAUSE_OK, diapause_open("surroundings", NULL, &diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, kCount, DIAPAUSE_UINT8));
}

static void take(uint64_t version, int level) {
  fill(data, kCount, version);
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, version, level, NULL));
}

static void close_and_expect(uint64_t version) {
  diapause_restart_info info;
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  open_one();
  fill(data, kCount, 99);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart(diapause, DIAPAUSE_NEWEST, &info));
  fill(expected, kCount, version);
  CHECK(info.version == version && memcmp(data, expected, kCount) == 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
}

static int use_in_child(void) {
  alarm(60);
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 3, DIAPAUSE_L1, NULL));
  CHECK_SAYS("child of it");
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_finish(diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}

static void fork_a_child(void) {
  int status = -1;
  take(1, DIAPAUSE_L1);
  const pid_t child = fork();
  if (child == 0) _exit(use_in_child());
  take(2, DIAPAUSE_L4);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  close_and_expect(2);
}

static int round_upwards(void* context) {
  *(int*)context = fegetround() == FE_UPWARD && fegetexcept() == FE_ALL_EXCEPT;
  return 0;
}

static void trap(void) {
  int is_own = 0;
  feclearexcept(FE_ALL_EXCEPT); /* Some MPIs compute before main. */
  fesetround(FE_UPWARD);
  feenableexcept(FE_ALL_EXCEPT);
  open_one();
  CHECK_STATUS(DIAPAUSE_OK, diapause_on_capture(diapause, round_upwards, &is_own));
  take(1, DIAPAUSE_L1);
  take(2, DIAPAUSE_L4);
  CHECK(is_own);
  close_and_expect(2);
  CHECK(fegetround() == FE_UPWARD && fegetexcept() == FE_ALL_EXCEPT);
  CHECK(fetestexcept(FE_ALL_EXCEPT) == 0);
}

static void print_into_nothing(void) {
  for (int stream = 0; stream < 3; ++stream) close(stream);
  open_one();
  take(1, DIAPAUSE_L1);
  take(2, DIAPAUSE_L4);
  for (int stream = 0; stream < 3; ++stream) CHECK(write(stream, "text", 4) < 0);
  close_and_expect(2);
}

static void shorten(void) {
  const int file = open("mapped", O_RDWR | O_CREAT, 0600);
  CHECK(ftruncate(file, kCount) == 0);
  void* const mapped = mmap(NULL, kCount, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(mapped != MAP_FAILED);
  open_one();
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "mapped", mapped, kCount, DIAPAUSE_UINT8));
  take(1, DIAPAUSE_L1);
  CHECK(ftruncate(file, 1) == 0);
  CHECK_STATUS(DIAPAUSE_ERR_ARGUMENT, diapause_checkpoint(diapause, 2, DIAPAUSE_L1, NULL));
  CHECK_SAYS("too short");
  CHECK_STATUS(DIAPAUSE_OK, diapause_unprotect(diapause, "mapped"));
  take(3, DIAPAUSE_L1);
  close_and_expect(3);
}

static void lose_files(void) {
  open_one();
  take(1, DIAPAUSE_L1);
  CHECK_STATUS(DIAPAUSE_OK, diapause_wait(diapause, 1, DIAPAUSE_L1, 60));
  CHECK(system("find \"$MEMORY\" -name mailbox -o -name '*.img' -o -path '*/spare/*' | xargs "
               "truncate -s 0") == 0);
  take(2, DIAPAUSE_L1);
  take(3, DIAPAUSE_L4);
  close_and_expect(3);
}

int main(int argc, char** argv) {
  begin_checks_alone(argc, argv);
  if (is_part("child")) {
    open_one();
    fork_a_child();
  }
  if (is_part("floats")) trap();
  if (is_part("streams")) print_into_nothing();
  if (is_part("shortened")) shorten();
  if (is_part("cut")) lose_files();
  return end_checks();
}
