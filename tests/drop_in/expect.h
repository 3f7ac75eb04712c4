/* Ends a test program that finds something else than it should: under a launcher all ranks end with
 * it. */
#ifndef DIAPAUSE_TESTS_DROP_IN_EXPECT_H
#define DIAPAUSE_TESTS_DROP_IN_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

#endif
