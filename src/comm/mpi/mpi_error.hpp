// Turns what an MPI call returned into a Status.
#pragma once

#include <mpi.h>

#include <array>
#include <string>

#include "base/result.hpp"

namespace diapause::comm {

inline Status check(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return fail(Code::comm, std::string(call) + ": " +
                              std::string(text.data(), static_cast<std::size_t>(length)));
}

}  // namespace diapause::comm
