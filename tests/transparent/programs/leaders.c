/* Processes that start others one after the other, of which the first thread ends before the second
 * one does. The kernel takes its time to end the first thread, because it looks at the mutexes that
 * it may hold, and each of them lies in memory that the process has not touched. */
#include <linux/futex.h>
#include <pthread.h>

#include "step.h"

enum { STARTERS = 3, MUTEXES = 2000, PAGE = 4096 };

static struct robust_list_head head;

static void make_list(void) {
  const int file = memfd_create("mutexes", 0);
  MUST(ftruncate(file, MUTEXES * PAGE) == 0);
  char* const memory = mmap(NULL, MUTEXES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MUST(memory != MAP_FAILED && close(file) == 0);
  for (int i = 0; i < MUTEXES; ++i) {
    struct robust_list* const one = (struct robust_list*)(memory + i * PAGE);
    one->next = i + 1 < MUTEXES ? (struct robust_list*)(memory + (i + 1) * PAGE) : &head.list;
  }
  head.list.next = (struct robust_list*)memory;
  head.futex_offset = 64;
}

static void* end_later(void* nothing) {
  usleep(2000);
  _exit(3);
  return nothing;
}

static void start_processes(void) {
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t other;
      MUST(pthread_create(&other, NULL, end_later, NULL) == 0);
      MUST(syscall(SYS_set_robust_list, &head, sizeof head) == 0);
      syscall(SYS_exit, 0);
    }
    int status = 0;
    MUST(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    usleep(5000); /* so that there are moments at which all first threads live */
  }
}

int main(void) {
  pid_t starters[STARTERS];
  make_list();
  for (int i = 0; i < STARTERS; ++i) {
    starters[i] = fork();
    if (starters[i] == 0) start_processes();
  }
  printf("they start\n");
  fflush(stdout);
  await_gate();
  for (int i = 0; i < STARTERS; ++i) {
    int status = 0;
    MUST(kill(starters[i], SIGKILL) == 0 && waitpid(starters[i], &status, 0) == starters[i] &&
         WTERMSIG(status) == SIGKILL);
  }
  return DONE;
}
