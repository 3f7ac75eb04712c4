#include "places.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace diapause::drop_in {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnersOnly = 0700;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

std::error_code last_error() { return {errno, std::generic_category()}; }

// Other ranks of the node do the same at the same time.
std::error_code make(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), kOwnersOnly) == 0 || errno == EEXIST) return {};
  return last_error();
}

}  // namespace

std::string own_directory(const std::string& path, const std::string& key) {
  const auto check = [&](const std::error_code& error) {
    if (!error) return;
    throw std::runtime_error(key + " = " + path +
                             ": nothing can be written there: " + error.message());
  };
  fs::path named = path;
  if (!named.has_filename()) named = named.parent_path();  // it ends with a slash
  check(make(named));
  std::error_code error;
  fs::path own = fs::canonical(named, error);
  check(error);
  struct stat state {};
  if (::stat(own.c_str(), &state) != 0) check(last_error());
  if (!S_ISDIR(state.st_mode)) check(std::make_error_code(std::errc::not_a_directory));
  if (state.st_uid != ::geteuid() || (state.st_mode & kWritableByOthers) != 0) {
    own /= "diapause-" + std::to_string(::geteuid());
    check(make(own));
  }
  if (::access(own.c_str(), W_OK | X_OK) != 0) check(last_error());
  return own.string();
}

}  // namespace diapause::drop_in
