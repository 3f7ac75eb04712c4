/* What the compiler's descriptor of an array says about its memory. */
#ifndef DIAPAUSE_BINDINGS_FORTRAN_DESCRIPTOR_H
#define DIAPAUSE_BINDINGS_FORTRAN_DESCRIPTOR_H

#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool diapause_fortran_is_empty(const CFI_cdesc_t* data) {
  for (int i = 0; i < data->rank; ++i) {
    if (data->dim[i].extent == 0) return true;
  }
  return false;
}

/* Returns whether every element follows the one before it. The compiler's own function is not used,
 * because it trusts extents that are not known. */
static inline bool diapause_fortran_is_contiguous(const CFI_cdesc_t* data) {
  ptrdiff_t step = (ptrdiff_t)data->elem_len;
  for (int i = 0; i < data->rank; ++i) {
    if (data->dim[i].extent != 1 && data->dim[i].sm != step) return false;
    step *= data->dim[i].extent;
  }
  return true;
}

static inline uint64_t diapause_fortran_count_of(const CFI_cdesc_t* data) {
  uint64_t count = 1;
  for (int i = 0; i < data->rank; ++i) count *= (uint64_t)data->dim[i].extent;
  return count;
}

/* Returns why the data is not contiguous memory of known size; NULL if it is. */
static inline const char* diapause_fortran_trouble_with(const CFI_cdesc_t* data) {
  if (data->base_addr == NULL) return "it is not allocated, or a pointer to nothing";
  if (data->rank > 0 && data->dim[data->rank - 1].extent == -1)
    return "an array (*) has no end: give a section of it";
  if (data->elem_len == 0) return "its elements have no length";
  if (!diapause_fortran_is_empty(data) && !diapause_fortran_is_contiguous(data)) {
    return "it is not contiguous: protect the whole array, or a copy";
  }
  return NULL;
}

#endif
