/* What the two files of the Fortran binding share. The functions have the interfaces that
 * diapause.F90 gives them: strings and arrays come as descriptors, optional arguments that are left
 * out as NULL. */
#ifndef DIAPAUSE_BINDINGS_FORTRAN_GLUE_H
#define DIAPAUSE_BINDINGS_FORTRAN_GLUE_H

#include <ISO_Fortran_binding.h>

#include "diapause/diapause.h"

enum { kUnheardText = 508, kMostName = 4096 };

/* type(diapause_t). `unheard` is the first failure of a call without `status` that no call has
 * returned yet. */
typedef struct Run {
  diapause_t* instance;
  int unheard;
  char text[kUnheardText];
} Run;

/* Copies the text without trailing blanks, with a NUL; returns false if it does not fit into
 * kMostName bytes. */
int diapause_fortran_text(const CFI_cdesc_t* from, char* to);

/* Returns true if no instance is open there, and refuses to open another one otherwise: the handle
 * of the first would be lost. */
int diapause_fortran_can_open(Run* run, int* status, CFI_cdesc_t* message);

/* Returns a status to the program. `text` is NULL for the text of the library. */
void diapause_fortran_answer(Run* run, int status, const char* text, int* answer,
                             CFI_cdesc_t* message);

#endif
