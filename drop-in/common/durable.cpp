#include "durable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

namespace diapause::drop_in {
namespace {

namespace fs = std::filesystem;

std::string text_of(int error) { return std::generic_category().message(error); }

// Returns 0 or an error.
int sync(const fs::path& path, int flags) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file < 0) return errno;
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

// Returns 0 or an error.
int write_new(const fs::path& path, const std::string& text, const fs::path& permissions_of) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return errno;
  struct stat status {};
  if (::stat(permissions_of.c_str(), &status) == 0)
    static_cast<void>(::fchmod(::fileno(file), status.st_mode & 07777U));
  const bool is_safe = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int error = is_safe ? 0 : errno;
  if (std::fclose(file) != 0 && error == 0) return errno;
  return error;
}

}  // namespace

void replace_file(const fs::path& path, const std::string& text, const std::string& what) {
  std::error_code is_none;
  const fs::path known = fs::canonical(path, is_none);
  const fs::path target = is_none ? path : known;
  const fs::path next = target.string() + ".next";
  const int error = write_new(next, text, target);
  if (error != 0)
    throw std::runtime_error(path.string() + ": " + what + " cannot be written: " + text_of(error));
  rename_durably(next, target);
}

void copy_durably(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  const int error = sync(to, 0);
  if (error != 0) throw std::runtime_error(to.string() + ": it is not safe: " + text_of(error));
}

void rename_durably(const fs::path& from, const fs::path& to) {
  fs::rename(from, to);
  const fs::path folder = to.has_parent_path() ? to.parent_path() : fs::path(".");
  const int error = sync(folder, O_DIRECTORY);
  // Some file systems have no such operation for directories, and some directories may be written
  // to and not read.
  if (error != 0 && error != EINVAL && error != EACCES)
    throw std::runtime_error(to.string() + ": its name is not safe: " + text_of(error));
}

}  // namespace diapause::drop_in
