// What the files of sys/ share: retries, error texts and checked opens. Not for other folders.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

// Makes the call until a signal does not cut it short. Not for close: Linux has closed the descriptor even then.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// "cannot <action> <path>: <strerror>"; ENOENT is Code::not_found, a refused symbolic link Code::denied.
// `result` is what the kernel object returned: -errno.
Error path_error(std::string_view action, const std::string& path, std::int64_t result);

// Code::argument for a name that is not one plain component.
Status check_plain_name(std::string_view name, const Directory& directory);

// Opens a regular file of this user with these flags (O_CLOEXEC, O_NOFOLLOW and O_NOCTTY are added; new ones are 0600).
Result<File> open_checked(const Directory& directory, std::string_view name, int flags);

}  // namespace diapause::sys
