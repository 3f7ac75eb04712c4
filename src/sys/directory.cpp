#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sys/path.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kDeepestRemoval = 64;

int open_directory(Kernel& kernel, int base, const std::string& path, int extra_flags) {
  return uninterrupted(
      [&] { return kernel.openat(base, path.c_str(), kOpenDirectory | extra_flags, 0); });
}

// Returns the parent as a path that can be opened: "." for "a", "/" for "/a".
std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

// Removes trailing slashes. With one, a symbolic link would be followed in spite of O_NOFOLLOW.
std::string without_trailing_slashes(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path.substr(0, 1) : path.substr(0, end + 1);
}

int sync_directory(Kernel& kernel, int fd) {
  const int result = uninterrupted([&] { return kernel.fsync(fd); });
  // Some file systems have no such operation for directories. Their entries are as durable as the
  // file system makes them.
  return result == -EINVAL ? 0 : result;
}

Status check_owner(const Directory& directory, const struct stat& status) {
  if (status.st_uid != directory.user()) {
    return fail(Code::denied, fmt::format("{} belongs to user {} and not to user {}, who runs this "
                                          "program; choose a directory of "
                                          "your own",
                                          directory.path(), status.st_uid, directory.user()));
  }
  return {};
}

Status check_mode(const Directory& directory, const struct stat& status) {
  if ((status.st_mode & 022) != 0) {
    return fail(Code::denied,
                fmt::format("{} is writable by other users (mode {:04o}); run: chmod go-w {}",
                            directory.path(), status.st_mode & 07777, directory.path()));
  }
  return {};
}

Error open_error(const std::string& path, int result) {
  if (result != -ENOTDIR) return path_error("open directory", path, result);
  return Error{
      Code::denied,
      fmt::format("{} is not a directory, or is a symbolic link; give the path it points to", path),
      ENOTDIR};
}

// Makes the entry at `path` durable in its parent, also if it existed before: the process that made
// it may have died before its own sync. A parent that this user cannot open, or that nobody can
// write to, is skipped, because somebody else maintains it.
Status sync_parent_of(Kernel& kernel, const std::string& path) {
  const std::string parent = parent_of(path);
  const int fd = open_directory(kernel, AT_FDCWD, parent, 0);
  if (fd == -EACCES || fd == -EPERM) return {};
  if (fd < 0) return fail(open_error(parent, fd));
  const int result = sync_directory(kernel, fd);
  kernel.close(fd);
  if (result < 0 && result != -EROFS) return fail(path_error("sync", parent, result));
  return {};
}

Status make_with_parents(Kernel& kernel, const std::string& path) {
  const std::string parent = parent_of(path);
  const auto make = [&] {
    return uninterrupted([&] { return kernel.mkdirat(AT_FDCWD, path.c_str(), 0700); });
  };
  int result = make();
  if (result == -ENOENT && parent != path && parent != ".") {
    DIAPAUSE_TRY(make_with_parents(kernel, parent));
    result = make();
  } else if (result == 0) {
    DIAPAUSE_TRY(sync_parent_of(kernel, parent));
  }
  if (result < 0 && result != -EEXIST) return fail(path_error("make directory", path, result));
  return sync_parent_of(kernel, path);
}

Status remove_tree(Kernel& kernel, int base, const std::string& name, const std::string& path,
                   int depth);

Status remove_content(Kernel& kernel, int fd, const std::string& path, int depth) {
  std::vector<DirectoryEntry> entries;
  const int result = uninterrupted([&] { return kernel.list(fd, &entries); });
  if (result < 0) return fail(path_error("list", path, result));
  for (const DirectoryEntry& entry : entries) {
    DIAPAUSE_TRY(remove_tree(kernel, fd, entry.name, path + "/" + entry.name, depth + 1));
  }
  return {};
}

// Removes the file or directory `name` recursively. Of a symbolic link it removes the link itself.
Status remove_tree(Kernel& kernel, int base, const std::string& name, const std::string& path,
                   int depth) {
  if (depth > kDeepestRemoval) {
    return fail(
        Code::denied,
        fmt::format("{} is nested deeper than anything made here; remove it yourself", path));
  }
  const auto unlink = [&](int flags) {
    return uninterrupted([&] { return kernel.unlinkat(base, name.c_str(), flags); });
  };
  int result = open_directory(kernel, base, name, O_NOFOLLOW);
  if (result == -ENOTDIR || result == -ELOOP) {
    result = unlink(0);
  } else if (result >= 0) {
    const int fd = result;
    const Status emptied = remove_content(kernel, fd, path, depth);
    kernel.close(fd);
    DIAPAUSE_TRY(emptied);
    result = unlink(AT_REMOVEDIR);
  }
  if (result < 0 && result != -ENOENT) return fail(path_error("remove", path, result));
  return {};
}

}  // namespace

Directory::Directory(Directory&& other) noexcept
    : kernel_(other.kernel_),
      fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      id_(other.id_),
      user_(other.user_),
      is_volatile_(other.is_volatile_) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  std::swap(kernel_, other.kernel_);
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(id_, other.id_);
  std::swap(user_, other.user_);
  std::swap(is_volatile_, other.is_volatile_);
  return *this;
}

Directory::~Directory() {
  if (fd_ >= 0) kernel_->close(fd_);
}

Status Directory::open(int base, const std::string& name, Writers writers) {
  const int fd = open_directory(*kernel_, base, name, O_NOFOLLOW);
  if (fd < 0) return fail(open_error(path_, fd));
  fd_ = fd;
  struct stat status;
  const int result = uninterrupted([&] { return kernel_->fstat(fd_, &status); });
  if (result < 0) return fail(path_error("inspect", path_, result));
  id_ = {status.st_dev, status.st_ino};
  DIAPAUSE_TRY(check_owner(*this, status));
  return writers == Writers::owner ? check_mode(*this, status) : Status();
}

void Directory::ask_storage() {
  const auto there = space();
  is_volatile_ = there && there->is_memory;
}

Result<Directory> Directory::make_private(Kernel& kernel, const std::string& path) {
  if (path.empty()) return fail(Code::argument, "the path of a directory is empty");
  DIAPAUSE_TRY(make_with_parents(kernel, without_trailing_slashes(path)));
  return open_private(kernel, path);
}

bool Directory::may_exist(Kernel& kernel, const std::string& path) {
  const int fd = open_directory(kernel, AT_FDCWD, path, 0);
  if (fd >= 0) kernel.close(fd);
  return fd != -ENOENT && fd != -ENOTDIR;
}

Result<Directory> Directory::open_private(Kernel& kernel, const std::string& path) {
  if (path.empty()) return fail(Code::argument, "the path of a directory is empty");
  const std::string stripped = without_trailing_slashes(path);
  Directory directory(kernel, stripped, ::geteuid());
  DIAPAUSE_TRY(directory.open(AT_FDCWD, stripped, Writers::owner));
  return directory;
}

Result<Directory> Directory::make_child(std::string_view name) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  const int result = uninterrupted([&] { return kernel_->mkdirat(fd_, component.c_str(), 0700); });
  if (result < 0 && result != -EEXIST)
    return fail(path_error("make directory", path_ + "/" + component, result));
  // The directory is synced also if it existed before: the process that made it may have died
  // before its own sync.
  DIAPAUSE_TRY(sync());
  return open_child(name);
}

Result<Directory> Directory::open_inside(std::string_view name, Writers writers) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  Directory child(*kernel_, path_ + "/" + component, user_);
  DIAPAUSE_TRY(child.open(fd_, component, writers));
  child.is_volatile_ = is_volatile_ && child.id_.device == id_.device;
  return child;
}

Result<Directory> Directory::open_child(std::string_view name) const {
  return open_inside(name, Writers::owner);
}

Result<Directory> Directory::open_own_child(std::string_view name) const {
  return open_inside(name, Writers::anybody);
}

Result<File> Directory::open_file(std::string_view name, Access access, bool direct) const {
  // Without O_NONBLOCK, opening a named pipe that was put in a file's place would block for ever.
  int flags = O_RDONLY | O_NONBLOCK;
  if (access == Access::write) flags = O_WRONLY;
  if (access == Access::read_write) flags = O_RDWR;
  if (access == Access::append) flags = O_RDWR | O_APPEND;
  return open_checked(*this, name, flags | (direct ? O_DIRECT : 0));
}

Result<File> Directory::create_file(std::string_view name, bool direct) const {
  return open_checked(*this, name, O_RDWR | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0));
}

Result<File> Directory::create_new_file(std::string_view name, bool direct) const {
  return open_checked(*this, name, O_RDWR | O_CREAT | O_EXCL | (direct ? O_DIRECT : 0));
}

Status Directory::rename(std::string_view from, const Directory& to_directory,
                         std::string_view to) const {
  DIAPAUSE_TRY(check_plain_name(from, *this));
  DIAPAUSE_TRY(check_plain_name(to, to_directory));
  const std::string from_name(from);
  const std::string to_name(to);
  const int result = uninterrupted([&] {
    return kernel_->renameat(fd_, from_name.c_str(), to_directory.fd(), to_name.c_str());
  });
  if (result == 0) return {};
  return fail(path_error(
      "rename", fmt::format("{}/{} to {}/{}", path_, from, to_directory.path(), to), result));
}

Status Directory::remove_file(std::string_view name) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  const int result = uninterrupted([&] { return kernel_->unlinkat(fd_, component.c_str(), 0); });
  if (result < 0 && result != -ENOENT)
    return fail(path_error("remove", path_ + "/" + component, result));
  return {};
}

Status Directory::remove_child(std::string_view name) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  // A directory that was emptied before is removed at once.
  if (uninterrupted([&] { return kernel_->unlinkat(fd_, component.c_str(), AT_REMOVEDIR); }) == 0)
    return {};
  return remove_tree(*kernel_, fd_, component, path_ + "/" + component, 0);
}

Status Directory::sync() const {
  if (is_volatile_) return {};
  const int result = sync_directory(*kernel_, fd_);
  if (result < 0) return fail(path_error("sync", path_, result));
  return {};
}

Result<std::vector<DirectoryEntry>> Directory::list() const {
  std::vector<DirectoryEntry> entries;
  const int result = uninterrupted([&] { return kernel_->list(fd_, &entries); });
  if (result < 0) return fail(path_error("list", path_, result));
  return entries;
}

Result<FileId> Directory::id_of(std::string_view name) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  struct stat status;
  const int result =
      uninterrupted([&] { return kernel_->fstatat(fd_, component.c_str(), &status); });
  if (result < 0) return fail(path_error("inspect", path_ + "/" + component, result));
  return FileId{status.st_dev, status.st_ino};
}

Result<std::uint64_t> Directory::missing_bytes_of(std::string_view name) const {
  DIAPAUSE_TRY(check_plain_name(name, *this));
  const std::string component(name);
  struct stat status;
  const int result =
      uninterrupted([&] { return kernel_->fstatat(fd_, component.c_str(), &status); });
  if (result < 0) return fail(path_error("inspect", path_ + "/" + component, result));
  constexpr std::uint64_t kStatBlockBytes = 512;
  const auto present = static_cast<std::uint64_t>(status.st_blocks) * kStatBlockBytes;
  const auto length = static_cast<std::uint64_t>(status.st_size);
  return length - std::min(length, present);
}

Result<FileSystemSpace> Directory::space() const {
  FileSystemSpace space{};
  const int result = uninterrupted([&] { return kernel_->fstatvfs(fd_, &space); });
  if (result < 0) return fail(path_error("ask the free space of", path_, result));
  return space;
}

bool Directory::has_no_name() const {
  struct stat status;
  return uninterrupted([&] { return kernel_->fstat(fd_, &status); }) >= 0 && status.st_nlink == 0;
}

Status publish_file(const Directory& directory, std::string_view name, ByteView bytes,
                    std::string_view temporary) {
  DIAPAUSE_TRY_ASSIGN(const File file, directory.create_file(temporary));
  DIAPAUSE_TRY(file.write_all(bytes, 0));
  DIAPAUSE_TRY(file.sync());
  DIAPAUSE_TRY(directory.rename(temporary, directory, name));
  return directory.sync();
}

// Asks for the id of both, because a file system of layers may change it when something is made in
// a directory.
bool Directory::was_moved() const {
  struct stat there;
  const int result =
      uninterrupted([&] { return kernel_->fstatat(AT_FDCWD, path_.c_str(), &there); });
  if (result < 0) return result == -ENOENT;
  struct stat here;
  if (uninterrupted([&] { return kernel_->fstat(fd_, &here); }) < 0) return false;
  return here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

std::string Directory::real_path() const {
  std::string path;
  if (kernel_->real_path(fd_, &path) == 0 && path.starts_with('/')) return path;
  return plain_spelling(path_);
}

}  // namespace diapause::sys
