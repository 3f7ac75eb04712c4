/* Shared by the stepping programs of this folder. They compute in steps, take a checkpoint now and
 * then, may be killed, and end with numbers that only the right state gives. */
#ifndef DIAPAUSE_TESTS_TASK_H
#define DIAPAUSE_TESTS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diapause/diapause_mpi.h"

struct task {
  MPI_Comm comm; /* the ranks that compute */
  int rank, ranks;
  diapause_t* diapause; /* NULL in a plain run */
  long done;            /* steps behind us; also the version of a checkpoint taken now */

  /* What the command line asks for; see usage in task.c. */
  long steps, every, die_at, hold_at, pace_ms;
  int die_rank;
  bool plain, snapshot, funneled;
  const char *levels, *name, *result, *trace;
};

/* The behaviour of one program. Members may be NULL where nothing is to be done. */
struct program {
  const char* name;
  void (*create)(struct task*); /* the state before the first step */
  void (*protect)(
      struct task*); /* names the regions there are now; called before every checkpoint */
  void (*make_room)(
      struct task*); /* while a restart is open, before the data come; NULL: as protect */
  void (*resume)(
      struct task*); /* before the first step of this run, from the start or from a checkpoint */
  void (*advance)(struct task*, long step);
  uint64_t (*digest)(struct task*);
};

int run_program(int argc, char** argv, const struct program* program);

/* Runs the loop of run_program without MPI_Init and the options, for programs with several
 * instances. */
bool parse_task(int argc, char** argv, struct task* task);
void write_result(const struct task* task, uint64_t digest);
void die_if_asked(const struct task* task, bool fresh);
int level_now(const struct task* task);

/* Says what failed on standard error, which the driver expects to be empty. */
bool succeeded(const struct task* task, const char* what, int status);

/* Numbers that look random and are the same on every machine. */
uint64_t mix(uint64_t a, uint64_t b);
void fill(void* data, size_t bytes, uint64_t seed);
/* Before memory of a region is freed: a capture may be under way. */
void unprotect(struct task* task, const char* region);

uint64_t digest_bytes(uint64_t digest, const void* data, size_t bytes);

/* malloc that ends the program if there is no memory; 0 bytes give NULL. */
void* allocate(size_t bytes);

#endif
