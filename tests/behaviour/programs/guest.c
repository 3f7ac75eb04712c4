/* The library as a guest in the process: it starts no thread and no process, leaves no descriptor
 * and no handler behind, and what the program starts does not hold its checkpoints. */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int entries(const char* path) {
  DIR* directory = opendir(path);
  int count = 0;
  while (directory != NULL && readdir(directory) != NULL) ++count;
  if (directory != NULL) closedir(directory);
  return count;
}

static int handlers(void) {
  int count = 0;
  for (int number = 1; number < 65; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) ++count;
  }
  return count;
}

/* A program that lives longer than this one. Its process id goes to a file for the driver to end
 * it. */
static void start_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "300", (char*)NULL);
    _exit(127);
  }
  FILE* file = fopen("child", "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)child);
  fclose(file);
}

int main(int argc, char** argv) {
  begin_checks_alone(argc, argv);
  int64_t step = 3;
  diapause_t* diapause = NULL;
  const int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd"),
            caught = handlers();
  if (CHECK_STATUS(DIAPAUSE_OK, diapause_open("guest", NULL, &diapause))) {
    CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "step", &step, 1, DIAPAUSE_INT64));
    CHECK_STATUS(is_part("second") ? DIAPAUSE_OK : DIAPAUSE_ERR_NOT_FOUND,
                 diapause_restart(diapause, DIAPAUSE_NEWEST, NULL));
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, 1, DIAPAUSE_L4, NULL));
    CHECK(entries("/proc/self/task") == threads);
    CHECK(handlers() == caught);
    if (is_part("first")) {
      start_child();
      raise(SIGKILL);
    }
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(waitpid(-1, NULL, WNOHANG) < 0); /* no children */
  return end_checks();
}
