/* A semaphore with a name, which its first user and others that open it later share. */
#include <semaphore.h>

#include "step.h"

/* Another process opens the semaphore by its name, as the C library does where it does not know it
 * yet, and raises it. Returns the value that it had. */
static int raise_by_name(const char* name) {
  char path[128];
  snprintf(path, sizeof path, "/dev/shm/sem.%s", name + 1);
  const pid_t child = fork();
  if (child == 0) {
    int value = 0;
    const int file = open(path, O_RDWR);
    if (file < 0) _exit(255);
    sem_t* const by_name = mmap(NULL, sizeof *by_name, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (by_name == MAP_FAILED) _exit(254);
    _exit(sem_getvalue(by_name, &value) == 0 && sem_post(by_name) == 0 ? value : 253);
  }
  int status = 0;
  MUST(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(void) {
  char name[64];
  snprintf(name, sizeof name, "/diapause-test-%d", (int)getpid());
  sem_unlink(name);
  sem_t* const own = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
  MUST(own != SEM_FAILED);
  for (int i = 0; i < STEPS; ++i) {
    MUST(raise_by_name(name) == 1 + i);
    int value = 0;
    MUST(sem_getvalue(own, &value) == 0 && value == 2 + i);
    step(i, (unsigned long)value);
  }
  MUST(sem_unlink(name) == 0);
  return DONE;
}
