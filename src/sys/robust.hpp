// Has the code that the files of sys/ share: retries, error texts and checked opens. Other folders
// must not use it.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

void occupy_standard_streams();
int above_standard_streams(int fd);

// Repeats the call while a signal interrupts it. It is not for close, because Linux closes the
// descriptor even then.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// Opens a descriptor by `open`, which returns it or -errno, and returns the same. Descriptors 0 to
// 2 are those of the standard streams, also in a program that was started without them: what it
// prints must not get into a file of ours. This call makes those that are closed refuse reads and
// writes as before, but occupied, and never returns one of them.
template <class Open>
int open_above_standard_streams(Open open) {
  occupy_standard_streams();
  return above_standard_streams(open());
}

// Returns the error "cannot <action> <path>: <strerror>". `result` is the -errno that the kernel
// object returned. ENOENT becomes Code::not_found, and a refused symbolic link Code::denied.
Error path_error(std::string_view action, const std::string& path, std::int64_t result);

// Returns Code::argument for a name that is not one plain component.
Status check_plain_name(std::string_view name, const Directory& directory);

// Opens a regular file of this user with these flags and O_CLOEXEC, O_NOFOLLOW and O_NOCTTY. New
// files have mode 0600.
Result<File> open_checked(const Directory& directory, std::string_view name, int flags);

}  // namespace diapause::sys
