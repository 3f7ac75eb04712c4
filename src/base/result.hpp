// Errors as values. An Error is made once, beside the call that failed, and is passed up unchanged.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace diapause {

// The numbers equal those of diapause_status in diapause.h, which a static_assert in src/capi
// checks.
enum class Code : int {
  argument = -1,
  config = -2,
  io = -3,
  full = -4,
  busy = -5,
  corrupt = -6,
  not_found = -7,
  mismatch = -8,
  comm = -9,
  off = -10,
  internal = -11,
  denied = -12,
  memory = -13,
  timeout = -14,
  again = -15,
};

struct Error {
  Code code;
  // Names the thing (path, rank, tier, region) and, where it helps, what to do.
  std::string message;
  int os_errno = 0;  // errno of the failed system call; 0 if none
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// `return fail(Code::io, "...")` from any function that returns a Result.
inline tl::unexpected<Error> fail(Code code, std::string message, int os_errno = 0) {
  return tl::unexpected<Error>(Error{code, std::move(message), os_errno});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// Maps an errno to the code that tells a user what to do: ENOSPC and EDQUOT to `full`, EACCES and
// EPERM to `denied`, ENOMEM to `memory`, a lack that may be over in a moment (EMFILE, ENFILE,
// EAGAIN, ENOBUFS, EINTR) to `again`, and everything else to `io`.
Code code_of_errno(int os_errno);

// Returns whether a call that failed with `code` may succeed a moment later. Such a failure says
// nothing about what lies on a disk.
bool is_of_the_moment(Code code);

// Returns an error with the message "<what>: <strerror>" and the code that code_of_errno() gives.
Error os_error(const std::string& what, int os_errno);

}  // namespace diapause

// DIAPAUSE_TRY(expr) returns from the enclosing function if `expr`, a Status or Result, is an
// error. DIAPAUSE_TRY_ASSIGN(decl, expr) does the same, and otherwise initializes `decl` with the
// value.
#define DIAPAUSE_CONCAT_(a, b) a##b
#define DIAPAUSE_CONCAT(a, b) DIAPAUSE_CONCAT_(a, b)
#define DIAPAUSE_TRY_(name, expr)                                \
  do {                                                           \
    auto name = (expr);                                          \
    if (!name) return ::diapause::fail(std::move(name.error())); \
  } while (false)
#define DIAPAUSE_TRY(expr) DIAPAUSE_TRY_(DIAPAUSE_CONCAT(diapause_try_, __LINE__), expr)
#define DIAPAUSE_TRY_ASSIGN_(name, decl, expr)                 \
  auto name = (expr);                                          \
  if (!name) return ::diapause::fail(std::move(name.error())); \
  decl = std::move(*name)
#define DIAPAUSE_TRY_ASSIGN(decl, expr) \
  DIAPAUSE_TRY_ASSIGN_(DIAPAUSE_CONCAT(diapause_try_, __LINE__), decl, expr)
