/* Shared by the checking programs of this folder. They say what is not as it should be, go on, and
 * end with 1. They say it on the standard error that they began with, even where they close it. */
#ifndef DIAPAUSE_TESTS_CHECK_H
#define DIAPAUSE_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "diapause/diapause_mpi.h"

/* Both give whether it was so. */
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
#define CHECK_STATUS(wanted, call) check_status((wanted), (call), #call, __FILE__, __LINE__)
/* The last error names this. */
#define CHECK_SAYS(text) check_says((text), __FILE__, __LINE__)

bool check_that(bool holds, const char* text, const char* file, int line);
bool check_status(int wanted, int status, const char* call, const char* file, int line);
bool check_says(const char* text, const char* file, int line);

/* argv[1] says which part of the program runs. */
void begin_checks(int* argc, char*** argv); /* with MPI_Init */
void begin_checks_alone(int argc, char** argv);
bool is_part(const char* part);
int world_rank(void);
/* MPI_Finalize, if need be; the exit status of the program. */
int end_checks(void);

/* Waits until a file is there, at most a minute. */
bool wait_for_file(const char* path);
void make_file(const char* path);

#endif
