#include "sys/text_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "sys/file.hpp"
#include "sys/process.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

// /dev/null stays a file with nothing in it.
bool is_device(const struct stat& status) {
  constexpr unsigned kMemoryDevices = 1, kNull = 3;
  return S_ISBLK(status.st_mode) ||
         (S_ISCHR(status.st_mode) && status.st_rdev != makedev(kMemoryDevices, kNull));
}

}  // namespace

Result<std::string> read_text_file(Kernel& kernel, const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would block for ever.
  const int fd =
      kernel.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) return fail(os_error("cannot read " + path, -fd));
  const File file(kernel, fd, path);
  struct stat status;
  const int result = uninterrupted([&] { return kernel.fstat(fd, &status); });
  if (result < 0) return fail(path_error("inspect", path, result));
  if (S_ISFIFO(status.st_mode) || is_device(status)) {
    return fail(Code::io, fmt::format("{} is a {}: what is in it must be in a file", path,
                                      S_ISFIFO(status.st_mode) ? "pipe" : "device"));
  }
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  if (size > kMiB) return fail(Code::io, path + " is larger than 1 MiB");
  std::string text(size, '\0');
  DIAPAUSE_TRY(file.read_exact(std::as_writable_bytes(std::span(text.data(), text.size())), 0));
  return text;
}

namespace {

// Errors name the path as `shown`.
Result<File> open_regular(Kernel& kernel, const std::string& path, int flags, mode_t mode,
                          const std::string& shown) {
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), flags, mode); });
  if (fd < 0) return fail(path_error("open", shown, fd));
  File file(kernel, fd, shown);
  struct stat status;
  const int result = uninterrupted([&] { return kernel.fstat(fd, &status); });
  if (result < 0) return fail(path_error("inspect", shown, result));
  if (!S_ISREG(status.st_mode)) return fail(Code::denied, shown + " is not a regular file");
  return file;
}

// Opens a file that a user names for writing. `flags` decide about existing contents.
Result<File> open_to_write(Kernel& kernel, const std::string& path, int flags, mode_t mode,
                           const std::string& shown) {
  // Without O_NONBLOCK, opening a named pipe would block for ever.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  return open_regular(kernel, path, kFlags | flags, mode, shown);
}

// Splits a text that arrives in pieces into lines.
class LineSplitter {
 public:
  explicit LineSplitter(const std::function<void(std::string_view)>& each) : each_(each) {}

  void add(std::string_view piece) {
    for (std::size_t end = piece.find('\n'); end != std::string_view::npos;
         end = piece.find('\n')) {
      keep(piece.substr(0, end));
      finish();
      piece.remove_prefix(end + 1);
    }
    keep(piece);
  }

  void finish() {
    if (!is_too_long_ && !line_.empty()) each_(line_);
    line_.clear();
    is_too_long_ = false;
  }

 private:
  void keep(std::string_view part) {
    constexpr std::size_t kMost = 16 * kMiB;
    is_too_long_ = is_too_long_ || part.size() > kMost - line_.size();
    if (!is_too_long_) line_ += part;
  }

  const std::function<void(std::string_view)>& each_;
  std::string line_;
  bool is_too_long_ = false;
};

}  // namespace

Status read_lines(Kernel& kernel, const std::string& path,
                  const std::function<void(std::string_view)>& each) {
  // With O_NONBLOCK a named pipe does not block.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  DIAPAUSE_TRY_ASSIGN(const File file, open_regular(kernel, path, kFlags, 0, path));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  LineSplitter lines(each);
  std::string piece;
  for (std::uint64_t offset = 0; offset < size; offset += piece.size()) {
    piece.resize(std::min<std::uint64_t>(size - offset, kMiB));
    DIAPAUSE_TRY(
        file.read_exact(std::as_writable_bytes(std::span(piece.data(), piece.size())), offset));
    lines.add(piece);
  }
  lines.finish();
  return {};
}

Status append_line(Kernel& kernel, const std::string& path, const std::string& line) {
  DIAPAUSE_TRY_ASSIGN(const File file, open_to_write(kernel, path, 0, 0600, path));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  return file.write_all(as_byte_view(line + "\n"), size);
}

namespace {

// Another process may be replacing the same file.
Result<std::string> fresh_name(const std::string& path) {
  std::uint64_t random = 0;
  DIAPAUSE_TRY(random_bytes(std::as_writable_bytes(std::span(&random, 1))));
  return fmt::format("{}.{:016x}.new", path, random);
}

}  // namespace

Status check_replaceable(Kernel& kernel, const std::string& path) {
  struct stat status;
  const int result = kernel.fstatat(AT_FDCWD, path.c_str(), &status);
  if (result == 0 && S_ISDIR(status.st_mode)) return fail(Code::denied, path + " is a directory");
  DIAPAUSE_TRY_ASSIGN(const std::string fresh, fresh_name(path));
  const auto file = open_to_write(kernel, fresh, O_EXCL, 0644, path);
  if (!file) return fail(file.error());
  (void)kernel.unlinkat(AT_FDCWD, fresh.c_str(), 0);
  return {};
}

Status replace_text_file(Kernel& kernel, const std::string& path, const std::string& text) {
  DIAPAUSE_TRY_ASSIGN(const std::string fresh, fresh_name(path));
  const auto put_in_place = [&]() -> Status {
    {
      DIAPAUSE_TRY_ASSIGN(const File file, open_to_write(kernel, fresh, O_EXCL, 0644, path));
      DIAPAUSE_TRY(file.write_all(as_byte_view(text), 0));
    }
    const int result = uninterrupted(
        [&] { return kernel.renameat(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str()); });
    if (result < 0) return fail(path_error("replace", path, result));
    return {};
  };
  Status done = put_in_place();
  if (!done) (void)kernel.unlinkat(AT_FDCWD, fresh.c_str(), 0);
  return done;
}

Result<TextWriter> TextWriter::create(Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(auto file, open_to_write(kernel, path, O_TRUNC, 0600, path));
  return TextWriter(std::move(file));
}

Status TextWriter::add_line(const std::string& line) {
  const std::string whole = line + "\n";
  DIAPAUSE_TRY(file_.write_all(as_byte_view(whole), size_));
  size_ += whole.size();
  return {};
}

}  // namespace diapause::sys
