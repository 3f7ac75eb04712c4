// The subroutines that Fortran programs call, under gfortran's names: texts come with their lengths
// behind all other arguments, and end in blanks.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "scr.h"

namespace {

constexpr int kTooLong = 1;

std::string from_fortran(const char* text, std::size_t length) {
  const std::string whole(text, length);
  const auto last = whole.find_last_not_of(' ');
  return last == std::string::npos ? "" : whole.substr(0, last + 1);
}

// A text that is cut short is an error.
int to_fortran(const char* text, char* to, std::size_t length) {
  const std::size_t size = std::strlen(text);
  std::memset(to, ' ', length);
  std::memcpy(to, text, std::min(size, length));
  return size <= length ? SCR_SUCCESS : kTooLong;
}

}  // namespace

extern "C" {

void scr_init_(int* ierror) { *ierror = SCR_Init(); }

void scr_finalize_(int* ierror) { *ierror = SCR_Finalize(); }

void scr_config_(const char* config, char* value, int* ierror, std::size_t config_length,
                 std::size_t value_length) {
  const char* const found = SCR_Config(from_fortran(config, config_length).c_str());
  *ierror = to_fortran(found == nullptr ? "" : found, value, value_length);
  std::free(const_cast<char*>(found));
}

void scr_route_file_(const char* name, char* file, int* ierror, std::size_t name_length,
                     std::size_t file_length) {
  char path[SCR_MAX_FILENAME] = "";
  *ierror = SCR_Route_file(from_fortran(name, name_length).c_str(), path);
  const int fits = to_fortran(path, file, file_length);
  if (*ierror == SCR_SUCCESS) *ierror = fits;
}

void scr_have_restart_(int* flag, char* name, int* ierror, std::size_t length) {
  char found[SCR_MAX_FILENAME] = "";
  *ierror = SCR_Have_restart(flag, found);
  const int fits = to_fortran(found, name, length);
  if (*ierror == SCR_SUCCESS) *ierror = fits;
}

void scr_start_restart_(char* name, int* ierror, std::size_t length) {
  char found[SCR_MAX_FILENAME] = "";
  *ierror = SCR_Start_restart(found);
  const int fits = to_fortran(found, name, length);
  if (*ierror == SCR_SUCCESS) *ierror = fits;
}

void scr_complete_restart_(const int* valid, int* ierror) {
  *ierror = SCR_Complete_restart(*valid);
}

void scr_need_checkpoint_(int* flag, int* ierror) { *ierror = SCR_Need_checkpoint(flag); }

void scr_start_checkpoint_(int* ierror) { *ierror = SCR_Start_checkpoint(); }

void scr_complete_checkpoint_(const int* valid, int* ierror) {
  *ierror = SCR_Complete_checkpoint(*valid);
}

void scr_start_output_(const char* name, const int* flags, int* ierror, std::size_t length) {
  *ierror = SCR_Start_output(from_fortran(name, length).c_str(), *flags);
}

void scr_complete_output_(const int* valid, int* ierror) { *ierror = SCR_Complete_output(*valid); }

void scr_current_(const char* name, int* ierror, std::size_t length) {
  *ierror = SCR_Current(from_fortran(name, length).c_str());
}

void scr_drop_(const char* name, int* ierror, std::size_t length) {
  *ierror = SCR_Drop(from_fortran(name, length).c_str());
}

void scr_delete_(const char* name, int* ierror, std::size_t length) {
  *ierror = SCR_Delete(from_fortran(name, length).c_str());
}

void scr_get_version_(char* version, int* ierror, std::size_t length) {
  *ierror = to_fortran(SCR_Get_version(), version, length);
}

void scr_should_exit_(int* flag, int* ierror) { *ierror = SCR_Should_exit(flag); }

}  // extern "C"
