#include "sys/lock_holders.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "sys/value_file.hpp"

namespace diapause::sys {
namespace {

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// Returns whether a descriptor of another process refers to the file and holds a lock on it.
bool holds_lock(const std::string& process, const std::string& descriptor,
                const struct stat& file) {
  const std::string link = fmt::format("/proc/{}/fd/{}", process, descriptor);
  struct stat its;
  if (::stat(link.c_str(), &its) != 0 || its.st_dev != file.st_dev || its.st_ino != file.st_ino)
    return false;
  const auto facts =
      read_value(real_kernel(), fmt::format("/proc/{}/fdinfo/{}", process, descriptor));
  return facts &&
         (facts->find("FLOCK") != std::string::npos || facts->find("OFDLCK") != std::string::npos);
}

bool holds_lock(const std::string& process, const struct stat& file) {
  const auto descriptors = list_names(real_kernel(), fmt::format("/proc/{}/fd", process));
  if (!descriptors) return false;  // it belongs to another user, or has ended
  return std::ranges::any_of(*descriptors, [&](const std::string& descriptor) {
    return holds_lock(process, descriptor, file);
  });
}

// Returns the name of the process in the process table. It may be anything, so only printable ASCII
// enters a message.
std::string name_of(const std::string& process) {
  std::string name = read_value(real_kernel(), fmt::format("/proc/{}/comm", process)).value_or("?");
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

}  // namespace

std::string lock_holders(const File& file) {
  struct stat status;
  if (file.kernel().fstat(file.fd(), &status) < 0 || status.st_dev == 0) return "";
  const auto processes = list_names(real_kernel(), "/proc");
  if (!processes) return "";
  std::string text;
  for (const std::string& process : *processes) {
    if (!is_number(process) || !holds_lock(process, status)) continue;
    text += fmt::format("{}process {} ('{}')", text.empty() ? "" : ", ", process, name_of(process));
  }
  return text;
}

}  // namespace diapause::sys
