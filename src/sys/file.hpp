// These files and directories close themselves, retry EINTR, continue short reads and writes, and
// name the path in every error. All opens are relative to a Directory, refuse symbolic links, and
// create with mode 0600 or 0700.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// Identifies a file or directory whatever its name is. The kernel reuses an id only after the file
// is removed and closed.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

class File {
 public:
  File() = default;
  // `flags` are those that the file was opened with.
  File(Kernel& kernel, int fd, std::string path, int flags = 0)
      : kernel_(&kernel), fd_(fd), flags_(flags), path_(std::move(path)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();  // closes; a close error is lost, so call sync() first where it matters

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Kernel& kernel() const { return *kernel_; }
  const std::string& path() const { return path_; }
  bool is_direct() const;            // whether transfers bypass the page cache
  FileId id() const { return id_; }  // for files that a Directory has opened
  void was_renamed_to(std::string path) { path_ = std::move(path); }

  // Both fill or write all of `data`; a file that ends earlier is Code::corrupt ("ends at byte N").
  // If the file system refuses a transfer with O_DIRECT (EINVAL), because it wants another
  // alignment or finds out only then, this transfer and all later ones go through the page cache.
  Status read_exact(MutableBytes data, std::uint64_t offset) const;
  Status write_all(ByteView data, std::uint64_t offset) const;
  Status sync() const;
  // Reserves blocks for [0, length) and sets the size. Falls back to ftruncate where the file
  // system cannot reserve.
  Status reserve(std::uint64_t length) const;
  // Backs what it can of [begin, end) by large pages, if the file lies in memory and is that long.
  void back_by_large_pages(std::uint64_t begin, std::uint64_t end) const {
    kernel_->back_by_large_pages(fd_, begin, end);
  }
  // Reserves blocks in the same way and leaves the size as it is.
  Status reserve_front(std::uint64_t length) const;
  Status truncate(std::uint64_t length) const;
  Result<std::uint64_t> size() const;
  bool has_no_name() const;  // no directory refers to it any more

 private:
  friend Result<File> open_checked(const class Directory& directory, std::string_view name,
                                   int flags);
  bool stops_direct(std::int64_t result) const;
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  mutable int flags_ = 0;     // without O_DIRECT after a transfer was refused
  bool is_volatile_ = false;  // see Directory::ask_storage()
  std::string path_;
  FileId id_;
};

// With `append` data are written behind the current end of the file, whatever the offset.
enum class Access { read, write, read_write, append };

class Directory {
 public:
  Directory() = default;
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  // Opens the directory at `path`, or makes it with all missing parents. Directories made here have
  // mode 0700. The last component must be owned by this user and not be writable by others;
  // Code::denied otherwise.
  static Result<Directory> make_private(Kernel& kernel, const std::string& path);
  // Opens a directory like make_private(); it must exist (Code::not_found otherwise).
  static Result<Directory> open_private(Kernel& kernel, const std::string& path);
  // Returns false if nothing can be at a path whose directory cannot be opened.
  static bool may_exist(Kernel& kernel, const std::string& path);

  // Open a directory inside this one. make_child() makes it if there is none, and syncs this
  // directory.
  Result<Directory> make_child(std::string_view name) const;
  Result<Directory> open_child(std::string_view name) const;
  // Asks once whether the file system lies in memory. If it does, sync() of this directory, and of
  // everything that is opened in it from now on and lies on the same file system, does nothing: the
  // kernel has the data already, and no call makes them outlive the machine. If that cannot be
  // asked, everything is synced.
  void ask_storage();
  // Opens a child that the program itself has made inside a private directory. Others may have the
  // right to write to it.
  Result<Directory> open_own_child(std::string_view name) const;

  // `direct` asks for O_DIRECT and falls back to buffered transfers where it is refused. The file
  // must be a regular file owned by this user; Code::denied otherwise.
  Result<File> open_file(std::string_view name, Access access, bool direct = false) const;
  // Truncates an existing file.
  Result<File> create_file(std::string_view name, bool direct = false) const;
  // Fails with EEXIST in os_errno if the name exists.
  Result<File> create_new_file(std::string_view name, bool direct = false) const;

  Status rename(std::string_view from, const Directory& to_directory, std::string_view to) const;
  Status remove_file(std::string_view name) const;  // no error if it is absent
  // Removes recursively and never follows links; no error if it is absent.
  Status remove_child(std::string_view name) const;
  Status sync() const;
  void was_renamed_to(std::string path) { path_ = std::move(path); }
  Result<std::vector<DirectoryEntry>> list() const;
  bool has_no_name() const;  // it was removed
  // Returns whether both are the same directory, whatever paths they were opened by.
  bool is_same_as(const Directory& other) const { return id_ == other.id_; }
  // Returns whether the path that it was opened by leads elsewhere by now, or nowhere. The result
  // is false if that cannot be asked.
  bool was_moved() const;
  // Returns the absolute path without links where the kernel tells it; otherwise the path that the
  // directory was opened by, in plain spelling.
  std::string real_path() const;
  Result<FileSystemSpace> space() const;
  FileId id() const { return id_; }
  // Returns the id of the entry that has this name now; Code::not_found if there is none.
  Result<FileId> id_of(std::string_view name) const;
  // Returns by how many bytes the file is longer than the space allocated for it.
  Result<std::uint64_t> missing_bytes_of(std::string_view name) const;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Kernel& kernel() const { return *kernel_; }
  const std::string& path() const { return path_; }
  // Returns who owns it: the user who runs this program. That was asked once, when the outermost
  // one was opened.
  std::uint32_t user() const { return user_; }
  bool is_volatile() const { return is_volatile_; }  // see ask_storage()

 private:
  // Says who else may have the right to write to what is opened.
  enum class Writers { owner, anybody };
  Status open(int base, const std::string& name, Writers writers);
  Result<Directory> open_inside(std::string_view name, Writers writers) const;
  Directory(Kernel& kernel, std::string path, std::uint32_t user)
      : kernel_(&kernel), path_(std::move(path)), user_(user) {}
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  std::string path_;
  FileId id_;
  std::uint32_t user_ = 0;
  bool is_volatile_ = false;
};

// Returns whether `name` is one plain path component: not empty, no '/', no NUL, not "." or "..",
// and at most 255 bytes.
bool is_plain_name(std::string_view name);

// Puts a file of that name with these bytes into `directory`, atomically, and durable on return.
// Concurrent callers need different `temporary` names.
Status publish_file(const Directory& directory, std::string_view name, ByteView bytes,
                    std::string_view temporary);

class HeldFile;

// This is an exclusive lock on a file, held until this object is destroyed or the process dies. It
// uses flock where the file system supports it, else an fcntl lock on the whole file, else a second
// file that only one process can create (docs/locks.md).
class FileLock {
 public:
  // Tries for at most `wait_s` seconds. Code::busy names the path and the text that the holder
  // wrote into it.
  static Result<FileLock> acquire(const Directory& directory, std::string_view name,
                                  std::string_view holder_text, double wait_s);
  // Returns whether somebody holds the lock. Makes no file. A process that acquires the lock at the
  // same moment may have to try again.
  static bool is_held(const Directory& directory, std::string_view name);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(File file);
  File file_;
  bool is_range_ = false;
  std::unique_ptr<HeldFile> held_;
};

// This is page-aligned heap memory for transfers with O_DIRECT.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  static Result<AlignedBuffer> allocate(std::uint64_t bytes);  // Code::memory
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();
  MutableBytes bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace diapause::sys
