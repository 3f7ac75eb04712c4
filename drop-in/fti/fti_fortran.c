/* The procedures of the Fortran module FTI as they are in C. Nothing is done here that fti.h does
 * not do: arguments are translated, and memory that is not of one piece is refused. */
#include "../../bindings/fortran/descriptor.h"
#include "fti.h"

_Static_assert(sizeof(MPI_Fint) == sizeof(int),
               "the module takes integer(c_int) for the INTEGER of MPI");

enum { kMostName = 4096, kMostTypes = 64, kMostDimensions = 32 };

/* These are the module's variables. Types that have no equal in fti.h are opaque and have the same
 * size. */
int diapause_fti_character1, diapause_fti_logical1, diapause_fti_logical2, diapause_fti_logical4,
    diapause_fti_logical8, diapause_fti_integer1, diapause_fti_integer2, diapause_fti_integer4,
    diapause_fti_integer8, diapause_fti_real4, diapause_fti_real8, diapause_fti_real16,
    diapause_fti_complex4, diapause_fti_complex8, diapause_fti_complex16;

/* Opaque types that were made, by the size of their elements: each size is one type. */
static struct {
  int count;
  size_t bytes[kMostTypes];
  int ids[kMostTypes];
} opaque;

static int opaque_type(size_t bytes) {
  for (int i = 0; i < opaque.count; ++i) {
    if (opaque.bytes[i] == bytes) return opaque.ids[i];
  }
  fti_id_t id = FTI_NSCS;
  if (bytes > INT32_MAX || FTI_InitType(&id, (int)bytes) != FTI_SCES) return FTI_NSCS;
  if (opaque.count < kMostTypes) {
    opaque.bytes[opaque.count] = bytes;
    opaque.ids[opaque.count++] = id;
  }
  return id;
}

static void set_types(void) {
  opaque.count = 0;
  diapause_fti_character1 = FTI_CHAR;
  diapause_fti_logical1 = opaque_type(1);
  diapause_fti_logical2 = opaque_type(2);
  diapause_fti_logical4 = opaque_type(4);
  diapause_fti_logical8 = opaque_type(8);
  diapause_fti_integer1 = FTI_CHAR;
  diapause_fti_integer2 = FTI_SHRT;
  diapause_fti_integer4 = FTI_INTG;
  diapause_fti_integer8 = FTI_LONG;
  diapause_fti_real4 = FTI_SFLT;
  diapause_fti_real8 = FTI_DBLE;
  diapause_fti_real16 = opaque_type(16);
  diapause_fti_complex4 = opaque_type(8);
  diapause_fti_complex8 = opaque_type(16);
  diapause_fti_complex16 = opaque_type(32);
}

static int type_of(const CFI_cdesc_t* data) {
  const bool is_integer = (data->type & CFI_type_mask) == CFI_type_Integer;
  const bool is_real = (data->type & CFI_type_mask) == CFI_type_Real;
  if (is_integer && data->elem_len == 1) return FTI_CHAR;
  if (is_integer && data->elem_len == 2) return FTI_SHRT;
  if (is_integer && data->elem_len == 4) return FTI_INTG;
  if (is_integer && data->elem_len == 8) return FTI_LONG;
  if (is_real && data->elem_len == 4) return FTI_SFLT;
  if (is_real && data->elem_len == 8) return FTI_DBLE;
  return opaque_type(data->elem_len);
}

/* The text without the blanks behind it; one that is too long becomes an empty one, which fti.h
 * refuses. */
static const char* text_of(const CFI_cdesc_t* from, char* to) {
  size_t length = from->elem_len;
  const char* const text = from->base_addr;
  while (length > 0 && text[length - 1] == ' ') --length;
  if (length >= kMostName) length = 0;
  memcpy(to, text, length);
  to[length] = '\0';
  return to;
}

void diapause_fti_init(const CFI_cdesc_t* config_file, MPI_Fint* global_comm, int* err) {
  char path[kMostName];
  *err = FTI_Init(text_of(config_file, path), MPI_Comm_f2c(*global_comm));
  if (*err == FTI_NSCS || *err == FTI_HEAD) return;
  *global_comm = MPI_Comm_c2f(FTI_COMM_WORLD);
  set_types();
}

void diapause_fti_status(int* status) { *status = FTI_Status(); }

void diapause_fti_protect(const int* id, CFI_cdesc_t* data, int* err) {
  const char* const trouble = diapause_fortran_trouble_with(data);
  *err = FTI_NSCS;
  if (trouble != NULL) {
    fprintf(stderr, "fti: variable %d: %s\n", *id, trouble);
    return;
  }
  *err = FTI_Protect(*id, data->base_addr, (int64_t)diapause_fortran_count_of(data), type_of(data));
}

void diapause_fti_protect_address(const int* id, void* ptr, const int* count, const int* tid,
                                  int* err) {
  *err = FTI_Protect(*id, ptr, *count, *tid);
}

void diapause_fti_set_name(const int* id, const CFI_cdesc_t* name, const int* flag, int* err) {
  char text[kMostName];
  FTIT_attribute attribute = {{0, {0}}, ""};
  snprintf(attribute.name, sizeof attribute.name, "%.255s", text_of(name, text));
  *err = FTI_SetAttribute(*id, attribute, (FTIT_attributeFlag)*flag);
}

static void set_dimensions(int id, const CFI_cdesc_t* lengths, int flag, int* err) {
  FTIT_attribute attribute = {{(int)lengths->dim[0].extent, {0}}, ""};
  *err = FTI_NSCS;
  if (lengths->dim[0].extent > kMostDimensions) return;
  for (int i = 0; i < attribute.dim.ndims; ++i) {
    const char* const at = (const char*)lengths->base_addr + i * lengths->dim[0].sm;
    attribute.dim.count[i] = lengths->elem_len == 4 ? *(const int32_t*)at : *(const int64_t*)at;
  }
  *err = FTI_SetAttribute(id, attribute, (FTIT_attributeFlag)flag);
}

void diapause_fti_set_dimensions4(const int* id, const CFI_cdesc_t* lengths, const int* flag,
                                  int* err) {
  set_dimensions(*id, lengths, *flag, err);
}

void diapause_fti_set_dimensions8(const int* id, const CFI_cdesc_t* lengths, const int* flag,
                                  int* err) {
  set_dimensions(*id, lengths, *flag, err);
}

void diapause_fti_checkpoint(const int* id, const int* level, int* err) {
  *err = FTI_Checkpoint(*id, *level);
}

void diapause_fti_recover(int* err) { *err = FTI_Recover(); }

void diapause_fti_snapshot(int* err) { *err = FTI_Snapshot(); }

void diapause_fti_finalize(int* err) { *err = FTI_Finalize(); }

void diapause_fti_stored_size(const int* id, int64_t* size) { *size = FTI_GetStoredSize(*id); }

void diapause_fti_realloc(const int* id, void** ptr, int* err) {
  *ptr = FTI_Realloc(*id, *ptr);
  *err = *ptr == NULL ? FTI_NSCS : FTI_SCES;
}

void diapause_fti_recover_var_init(int* err) { *err = FTI_RecoverVarInit(); }

void diapause_fti_recover_var(const int* id, int* err) { *err = FTI_RecoverVar(*id); }

void diapause_fti_recover_var_finalize(int* err) { *err = FTI_RecoverVarFinalize(); }

void diapause_fti_init_icp(const int* id, const int* level, const int* activate, int* err) {
  *err = FTI_InitICP(*id, *level, *activate != 0);
}

void diapause_fti_add_var_icp(const int* id, int* err) { *err = FTI_AddVarICP(*id); }

void diapause_fti_finalize_icp(int* err) { *err = FTI_FinalizeICP(); }

void diapause_fti_set_id(const CFI_cdesc_t* name, int* id) {
  char text[kMostName];
  *id = FTI_setIDFromString(text_of(name, text));
}

void diapause_fti_get_id(const CFI_cdesc_t* name, int* id) {
  char text[kMostName];
  *id = FTI_getIDFromString(text_of(name, text));
}

int diapause_fti_init_type(const size_t* size) {
  fti_id_t type = FTI_NSCS;
  if (*size > INT32_MAX || FTI_InitType(&type, (int)*size) != FTI_SCES) return FTI_NSCS;
  return type;
}

int diapause_fti_init_composite_type(const CFI_cdesc_t* name, const size_t* size) {
  char text[kMostName];
  return FTI_InitCompositeType(text_of(name, text), *size, NULL);
}

int diapause_fti_add_scalar(int type, const CFI_cdesc_t* name, int field, size_t offset) {
  char text[kMostName];
  return FTI_AddScalarField(type, text_of(name, text), field, (int64_t)offset);
}

int diapause_fti_add_vector(int type, const CFI_cdesc_t* name, int field, size_t offset,
                            int dimensions, const int* lengths) {
  char text[kMostName];
  int64_t wide[kMostDimensions];
  if (dimensions < 0 || dimensions > kMostDimensions) return FTI_NSCS;
  for (int i = 0; i < dimensions; ++i) wide[i] = lengths[i];
  return FTI_AddVectorField(type, text_of(name, text), field, (int64_t)offset, dimensions, wide);
}
