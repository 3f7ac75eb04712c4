#define _DEFAULT_SOURCE
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failures, rank;
static const char* part = "";
static FILE* findings;

bool check_that(bool holds, const char* text, const char* file, int line) {
  if (holds) return true;
  ++failures;
  fprintf(findings, "%s:%d: rank %d: not so: %s\n", file, line, rank, text);
  return false;
}

bool check_status(int wanted, int status, const char* call, const char* file, int line) {
  if (status == wanted) return true;
  ++failures;
  fprintf(findings, "%s:%d: rank %d: %s gives %s, not %s: %s\n", file, line, rank, call,
          diapause_status_name(status), diapause_status_name(wanted), diapause_last_error());
  return false;
}

bool check_says(const char* text, const char* file, int line) {
  if (strstr(diapause_last_error(), text) != NULL) return true;
  ++failures;
  fprintf(findings, "%s:%d: rank %d: the error does not say '%s': %s\n", file, line, rank, text,
          diapause_last_error());
  return false;
}

void begin_checks(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  begin_checks_alone(*argc, *argv);
}

void begin_checks_alone(int argc, char** argv) {
  findings = fdopen(dup(STDERR_FILENO), "w");
  setvbuf(findings, NULL, _IOLBF, BUFSIZ);
  if (argc > 1) part = argv[1];
}

bool is_part(const char* wanted) { return strcmp(part, wanted) == 0; }

int world_rank(void) { return rank; }

int end_checks(void) {
  int with_mpi = 0;
  MPI_Initialized(&with_mpi);
  if (with_mpi) {
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
  }
  return failures == 0 ? 0 : 1;
}

bool wait_for_file(const char* path) {
  for (int i = 0; i < 6000; ++i) {
    if (access(path, F_OK) == 0) return true;
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
  fprintf(findings, "rank %d: %s did not come\n", rank, path);
  return false;
}

void make_file(const char* path) {
  FILE* file = fopen(path, "w");
  if (file != NULL) fclose(file);
}
