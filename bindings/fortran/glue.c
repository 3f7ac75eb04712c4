/* The procedures of the Fortran module in C. They translate arguments, call diapause.h, and keep
 * failures until a call with `status` returns them. */
#include "glue.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"

static const char kTooLong[] = "a name or path is too long";

int diapause_fortran_text(const CFI_cdesc_t* from, char* to) {
  size_t length = from != NULL ? from->elem_len : 0;
  const char* text = from != NULL ? from->base_addr : "";
  while (length > 0 && text[length - 1] == ' ') --length;
  if (length >= kMostName) return 0;
  memcpy(to, text, length);
  to[length] = '\0';
  return 1;
}

/* Assigns text as Fortran does: cut off, or filled with blanks. */
static void assign(CFI_cdesc_t* to, const char* text) {
  const size_t length = strlen(text);
  const size_t fits = length < to->elem_len ? length : to->elem_len;
  memcpy(to->base_addr, text, fits);
  memset((char*)to->base_addr + fits, ' ', to->elem_len - fits);
}

void diapause_fortran_answer(Run* run, int status, const char* text, int* answer,
                             CFI_cdesc_t* message) {
  if (status != DIAPAUSE_OK && text == NULL) text = diapause_last_error();
  if (answer == NULL) {
    if (status != DIAPAUSE_OK && run->unheard == DIAPAUSE_OK) {
      run->unheard = status;
      snprintf(run->text, sizeof run->text, "an earlier call without status failed: %s", text);
    }
    if (status != DIAPAUSE_OK && message != NULL) assign(message, text);
    return;
  }
  if (status == DIAPAUSE_OK && run->unheard != DIAPAUSE_OK) {
    status = run->unheard;
    text = run->text;
  }
  *answer = status;
  if (status != DIAPAUSE_OK && message != NULL) assign(message, text);
  if (text == run->text) run->unheard = DIAPAUSE_OK;
}

static void answer(Run* run, int status, int* to, CFI_cdesc_t* message) {
  diapause_fortran_answer(run, status, NULL, to, message);
}

static void refuse(Run* run, const char* text, int* to, CFI_cdesc_t* message) {
  diapause_fortran_answer(run, DIAPAUSE_ERR_ARGUMENT, text, to, message);
}

/* ---- opening and closing ------------------------------------------------------------------ */

int diapause_fortran_can_open(Run* run, int* status, CFI_cdesc_t* message) {
  if (run->instance == NULL) return 1;
  refuse(run, "this instance is open already: close it, or open another variable", status, message);
  return 0;
}

void diapause_fortran_open(Run* run, const CFI_cdesc_t* name, const CFI_cdesc_t* config,
                           int* status, CFI_cdesc_t* message) {
  char c_name[kMostName], c_config[kMostName];
  if (!diapause_fortran_can_open(run, status, message)) return;
  if (!diapause_fortran_text(name, c_name) || !diapause_fortran_text(config, c_config)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  answer(run, diapause_open(c_name, c_config[0] != '\0' ? c_config : NULL, &run->instance), status,
         message);
}

void diapause_fortran_finish(Run* run, int* status, CFI_cdesc_t* message) {
  const int finished = diapause_finish(run->instance);
  run->instance = NULL;
  answer(run, finished, status, message);
}

void diapause_fortran_close(Run* run, int* status, CFI_cdesc_t* message) {
  const int closed = diapause_close(run->instance);
  run->instance = NULL;
  answer(run, closed, status, message);
}

void diapause_fortran_close_within(Run* run, double seconds, int* status, CFI_cdesc_t* message) {
  const int closed = diapause_close_within(run->instance, seconds);
  run->instance = NULL;
  answer(run, closed, status, message);
}

/* ---- what is protected -------------------------------------------------------------------- */

/* Returns the library's type for Fortran's integers and reals, and opaque elements for all other
 * types, such as logical and complex. */
static diapause_type element_type(const CFI_cdesc_t* data) {
  const bool is_integer = (data->type & CFI_type_mask) == CFI_type_Integer;
  const bool is_real = (data->type & CFI_type_mask) == CFI_type_Real;
  if (is_integer && data->elem_len == 1) return DIAPAUSE_INT8;
  if (is_integer && data->elem_len == 2) return DIAPAUSE_INT16;
  if (is_integer && data->elem_len == 4) return DIAPAUSE_INT32;
  if (is_integer && data->elem_len == 8) return DIAPAUSE_INT64;
  if (is_real && data->elem_len == 4) return DIAPAUSE_FLOAT32;
  if (is_real && data->elem_len == 8) return DIAPAUSE_FLOAT64;
  return DIAPAUSE_BYTES;
}

/* Returns why the data cannot be protected; NULL if it can. */
static const char* trouble_with(const CFI_cdesc_t* data) {
  if (data->type == CFI_type_cptr || data->type == CFI_type_other) {
    return "what it is can be known only when the program runs: use diapause_protect_address";
  }
  return diapause_fortran_trouble_with(data);
}

static void refuse_data(Run* run, const char* region, const char* why, int* status,
                        CFI_cdesc_t* message) {
  char text[kUnheardText];
  snprintf(text, sizeof text, "region '%.255s': %s", region, why);
  refuse(run, text, status, message);
}

void diapause_fortran_protect(Run* run, const CFI_cdesc_t* region, CFI_cdesc_t* data, int* status,
                              CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  const char* trouble = trouble_with(data);
  if (trouble != NULL) {
    refuse_data(run, name, trouble, status, message);
    return;
  }
  const diapause_type type = element_type(data);
  const int done = type == DIAPAUSE_BYTES
                       ? diapause_protect_bytes(run->instance, name, data->base_addr,
                                                diapause_fortran_count_of(data), data->elem_len)
                       : diapause_protect(run->instance, name, data->base_addr,
                                          diapause_fortran_count_of(data), type);
  answer(run, done, status, message);
}

static int64_t element_at(const CFI_cdesc_t* values, int index) {
  return *(const int64_t*)((const char*)values->base_addr + index * values->dim[0].sm);
}

/* Returns why there is no such place in an array; NULL if there can be. */
static const char* trouble_with_place(const CFI_cdesc_t* global_shape, const CFI_cdesc_t* first,
                                      int rank) {
  if (global_shape->dim[0].extent != rank || first->dim[0].extent != rank)
    return "global_shape and first need one number for each dimension";
  for (int i = 0; i < rank; ++i) {
    if (element_at(global_shape, i) < 0) return "global_shape has a negative number";
    if (element_at(first, i) < 1) return "first is counted from 1";
  }
  return NULL;
}

void diapause_fortran_protect_block(Run* run, const CFI_cdesc_t* region, CFI_cdesc_t* data,
                                    const CFI_cdesc_t* global_shape, const CFI_cdesc_t* first,
                                    int* status, CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  const int rank = data->rank;
  const char* trouble = trouble_with(data);
  if (trouble == NULL && element_type(data) == DIAPAUSE_BYTES)
    trouble = "a block has numbers as elements";
  if (trouble == NULL && (rank < 1 || rank > 8)) trouble = "a block has 1 to 8 dimensions";
  if (trouble == NULL) trouble = trouble_with_place(global_shape, first, rank);
  if (trouble != NULL) {
    refuse_data(run, name, trouble, status, message);
    return;
  }
  uint64_t shape[8], whole[8], start[8]; /* slowest dimension first, which is Fortran's last */
  for (int i = 0; i < rank; ++i) {
    const int from = rank - 1 - i;
    shape[i] = (uint64_t)data->dim[from].extent;
    whole[i] = (uint64_t)element_at(global_shape, from);
    start[i] = (uint64_t)(element_at(first, from) - 1);
  }
  answer(run,
         diapause_protect_block(run->instance, name, data->base_addr, element_type(data), rank,
                                shape, whole, start),
         status, message);
}

void diapause_fortran_protect_address(Run* run, const CFI_cdesc_t* region, void* address,
                                      int64_t count, int64_t element_bytes, int* status,
                                      CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  if (count < 0 || element_bytes <= 0) {
    const char* trouble = count < 0 ? "count is negative" : "element_bytes is not positive";
    refuse_data(run, name, trouble, status, message);
    return;
  }
  answer(run,
         diapause_protect_bytes(run->instance, name, address, (uint64_t)count,
                                (uint64_t)element_bytes),
         status, message);
}

void diapause_fortran_unprotect(Run* run, const CFI_cdesc_t* region, int* status,
                                CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  answer(run, diapause_unprotect(run->instance, name), status, message);
}

void diapause_fortran_declare(Run* run, const CFI_cdesc_t* region, int declaration, int* status,
                              CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  answer(run, diapause_declare(run->instance, name, (diapause_declaration)declaration), status,
         message);
}

void diapause_fortran_allow_loss(Run* run, const CFI_cdesc_t* region, double bound,
                                 const int* codec, int* status, CFI_cdesc_t* message) {
  char name[kMostName];
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  const diapause_lossy_codec with = codec != NULL ? (diapause_lossy_codec)*codec : DIAPAUSE_LATTICE;
  answer(run, diapause_allow_loss(run->instance, name, with, bound), status, message);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* Returns the number of a version. A negative one, which would be a very large one in C, becomes
 * the one that the library refuses on all ranks alike. */
static uint64_t number_of(int64_t version) {
  return version < 0 ? DIAPAUSE_NEWEST : (uint64_t)version;
}

/* Returns the status of a call that has taken a version of this number, or has refused to. */
static void answer_for(Run* run, int64_t version, int done, int* status, CFI_cdesc_t* message) {
  char text[kUnheardText];
  const bool is_wrong = version < 0 && done == DIAPAUSE_ERR_ARGUMENT;
  if (is_wrong) snprintf(text, sizeof text, "version %lld is negative", (long long)version);
  diapause_fortran_answer(run, done, is_wrong ? text : NULL, status, message);
}

void diapause_fortran_checkpoint(Run* run, int64_t version, int level,
                                 diapause_checkpoint_info* info, int* status,
                                 CFI_cdesc_t* message) {
  const int done = diapause_checkpoint(run->instance, number_of(version), level, info);
  answer_for(run, version, done, status, message);
}

void diapause_fortran_checkpoint_files(Run* run, int64_t version, int level, bool complete,
                                       diapause_checkpoint_info* info, int* status,
                                       CFI_cdesc_t* message) {
  const int done =
      diapause_checkpoint_files(run->instance, number_of(version), level, complete, info);
  answer_for(run, version, done, status, message);
}

/* Fails if the path does not fit, because a path that is cut off would be another one. */
static void give_path(Run* run, int done, const char* path, CFI_cdesc_t* to, int* status,
                      CFI_cdesc_t* message) {
  assign(to, "");
  if (done == DIAPAUSE_OK && strlen(path) > to->elem_len) {
    char text[kUnheardText];
    snprintf(text, sizeof text,
             "the path of the directory has %zu characters: the variable with %zu is too short",
             strlen(path), to->elem_len);
    refuse(run, text, status, message);
    return;
  }
  if (done == DIAPAUSE_OK) assign(to, path);
  answer(run, done, status, message);
}

void diapause_fortran_files(Run* run, CFI_cdesc_t* directory, int* status, CFI_cdesc_t* message) {
  const char* path = "";
  const int done = diapause_files(run->instance, &path);
  give_path(run, done, path, directory, status, message);
}

void diapause_fortran_restore_files(Run* run, CFI_cdesc_t* directory, int* status,
                                    CFI_cdesc_t* message) {
  const char* path = "";
  const int done = diapause_restore_files(run->instance, &path);
  give_path(run, done, path, directory, status, message);
}

void diapause_fortran_snapshot(Run* run, int64_t version, diapause_checkpoint_info* info,
                               int* status, CFI_cdesc_t* message) {
  answer_for(run, version, diapause_snapshot(run->instance, number_of(version), info), status,
             message);
}

int diapause_fortran_should_stop(const Run* run, diapause_stop_info* info) {
  return diapause_should_stop(run->instance, info);
}

void diapause_fortran_wait(Run* run, int64_t version, int level, double seconds, bool* done,
                           int* status, CFI_cdesc_t* message) {
  int waited = diapause_wait(run->instance, (uint64_t)version, level, seconds);
  if (done != NULL) *done = waited == DIAPAUSE_OK;
  if (done != NULL && waited == DIAPAUSE_ERR_TIMEOUT) waited = DIAPAUSE_OK;
  answer(run, waited, status, message);
}

void diapause_fortran_poll(Run* run, int64_t version, diapause_progress* progress, int* status,
                           CFI_cdesc_t* message) {
  answer(run, diapause_poll(run->instance, (uint64_t)version, progress), status, message);
}

/* ---- restart ------------------------------------------------------------------------------ */

static uint64_t wanted(const int64_t* version) {
  return version != NULL ? (uint64_t)*version : DIAPAUSE_NEWEST;
}

void diapause_fortran_restart(Run* run, int* status, diapause_restart_info* info,
                              const int64_t* version, CFI_cdesc_t* message) {
  answer(run, diapause_restart(run->instance, wanted(version), info), status, message);
}

void diapause_fortran_restart_begin(Run* run, int* status, diapause_restart_info* info,
                                    const int64_t* version, CFI_cdesc_t* message) {
  answer(run, diapause_restart_begin(run->instance, wanted(version), info), status, message);
}

void diapause_fortran_stored(Run* run, const CFI_cdesc_t* region, int64_t* count,
                             int64_t* element_bytes, int* status, CFI_cdesc_t* message) {
  char name[kMostName];
  diapause_region_info info = {0};
  *count = 0;
  if (element_bytes != NULL) *element_bytes = 0;
  if (!diapause_fortran_text(region, name)) {
    refuse(run, kTooLong, status, message);
    return;
  }
  const int found = diapause_stored_find(run->instance, name, &info);
  if (found == DIAPAUSE_OK) *count = (int64_t)info.count;
  if (found == DIAPAUSE_OK && element_bytes != NULL) *element_bytes = (int64_t)info.element_bytes;
  answer(run, found, status, message);
}

/* Returns the names, each with a NUL, in one allocation with the pointers to them before; NULL
 * without memory. */
static const char** names_of(const CFI_cdesc_t* regions) {
  const size_t count = (size_t)regions->dim[0].extent;
  const char** names = malloc(count * (sizeof *names + regions->elem_len + 1) + 1);
  if (names == NULL) return NULL;
  char* text = (char*)(names + count);
  for (size_t i = 0; i < count; ++i) {
    const char* from = (const char*)regions->base_addr + (ptrdiff_t)i * regions->dim[0].sm;
    size_t length = regions->elem_len;
    while (length > 0 && from[length - 1] == ' ') --length;
    names[i] = text;
    memcpy(text, from, length);
    text[length] = '\0';
    text += length + 1;
  }
  return names;
}

void diapause_fortran_restore(Run* run, int* status, const CFI_cdesc_t* regions,
                              CFI_cdesc_t* message) {
  if (regions == NULL) {
    answer(run, diapause_restore(run->instance, NULL, 0), status, message);
    return;
  }
  if (regions->dim[0].extent < 1) { /* to the library that would mean all */
    refuse(run, "restore: name at least one region", status, message);
    return;
  }
  const char** names = names_of(regions);
  if (names == NULL) {
    diapause_fortran_answer(run, DIAPAUSE_ERR_MEMORY, "restore: no memory for the names", status,
                            message);
    return;
  }
  answer(run, diapause_restore(run->instance, names, (uint64_t)regions->dim[0].extent), status,
         message);
  free(names);
}

void diapause_fortran_restart_end(Run* run, int* status, CFI_cdesc_t* message) {
  answer(run, diapause_restart_end(run->instance), status, message);
}

void diapause_fortran_reason(const Run* run, CFI_cdesc_t* reason, const bool* background) {
  const bool of_background = background != NULL && *background;
  assign(reason, of_background ? diapause_background_reason(run->instance)
                               : diapause_restart_reason(run->instance));
}

void diapause_fortran_status_name(int status, CFI_cdesc_t* name) {
  assign(name, diapause_status_name(status));
}
