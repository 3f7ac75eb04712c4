// Files and directories that close themselves, retry EINTR, continue short reads and writes, and name the path in
// every error. All opens are relative to a Directory, refuse symbolic links, and create with mode 0600/0700.
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

// What makes a file or directory the same one, whatever it is called. Given to another only when it is gone and closed.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

class File {
 public:
  File() = default;
  // `flags` are those it was opened with.
  File(Kernel& kernel, int fd, std::string path, int flags = 0)
      : kernel_(&kernel), fd_(fd), flags_(flags), path_(std::move(path)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();  // closes; an error is lost, so sync() first where it matters

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Kernel& kernel() const { return *kernel_; }
  const std::string& path() const { return path_; }
  bool is_direct() const;            // whether transfers go past the page cache
  FileId id() const { return id_; }  // of files that a Directory has opened

  // Both go through the page cache from the first transfer on that the file system refuses with O_DIRECT (EINVAL): it
  // may want other alignments, or find out only then. Fills all of `data`; a file that ends before is Code::corrupt
  // ("ends at byte N").
  Status read_exact(MutableBytes data, std::uint64_t offset) const;
  Status write_all(ByteView data, std::uint64_t offset) const;
  Status sync() const;
  // Reserves blocks for [0, length) and sets the size; falls back to ftruncate where the file system cannot reserve.
  Status reserve(std::uint64_t length) const;
  // The same without the size, for files that have theirs.
  Status reserve_front(std::uint64_t length) const;
  Status truncate(std::uint64_t length) const;
  Result<std::uint64_t> size() const;
  bool has_no_name() const;  // no directory holds it any more

 private:
  friend Result<File> open_checked(const class Directory& directory, std::string_view name, int flags);
  bool stops_direct(std::int64_t result) const;
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  mutable int flags_ = 0;  // less O_DIRECT where a transfer was refused
  std::string path_;
  FileId id_;
};

// append: whatever is written goes behind what the file holds by then, at no matter which offset.
enum class Access { read, write, read_write, append };

class Directory {
 public:
  Directory() = default;
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  // Opens, or makes with all missing parents, the directory at `path`. Directories made here have mode 0700.
  // The last component must be owned by this user and not writable by others (Code::denied otherwise).
  static Result<Directory> make_private(Kernel& kernel, const std::string& path);
  // As above for one that must exist (Code::not_found otherwise).
  static Result<Directory> open_private(Kernel& kernel, const std::string& path);
  // Of one that cannot be opened so: false if nothing can be there.
  static bool may_exist(Kernel& kernel, const std::string& path);

  // A directory inside this one. make_child syncs this directory if it made one.
  Result<Directory> make_child(std::string_view name) const;
  Result<Directory> open_child(std::string_view name) const;
  // The same where the program has made it, inside of a private one: others may have the right to write to it.
  Result<Directory> open_own_child(std::string_view name) const;

  // `direct` asks for O_DIRECT and falls back to buffered where it is refused. Opened files must be regular files owned
  // by this user (Code::denied otherwise).
  Result<File> open_file(std::string_view name, Access access, bool direct = false) const;
  Result<File> create_file(std::string_view name, bool direct = false) const;  // truncates an old one of that name
  // Only if there is nothing of that name: os_errno EEXIST otherwise.
  Result<File> create_new_file(std::string_view name, bool direct = false) const;

  Status rename(std::string_view from, const Directory& to_directory, std::string_view to) const;
  Status remove_file(std::string_view name) const;   // absent is fine
  Status remove_child(std::string_view name) const;  // recursive; absent is fine; never follows links
  Status sync() const;
  Result<std::vector<DirectoryEntry>> list() const;
  bool has_no_name() const;  // it was removed
  // Whether both are one directory, whatever paths they were opened by.
  Result<bool> is_same_as(const Directory& other) const;
  // Absolute and without links where the kernel can tell; else the path that it was opened by, in plain spelling.
  std::string real_path() const;
  Result<FileSystemSpace> space() const;
  Result<FileId> id() const;
  Result<FileId> id_of(std::string_view name) const;  // of what is called so in here by now; Code::not_found
  // By how much the file is longer than the space that it has.
  Result<std::uint64_t> missing_bytes_of(std::string_view name) const;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Kernel& kernel() const { return *kernel_; }
  const std::string& path() const { return path_; }

 private:
  static Result<Directory> open_at(Kernel& kernel, int base, const std::string& name, const std::string& path);
  static Result<Directory> open_own_at(Kernel& kernel, int base, const std::string& name, const std::string& path);
  Directory(Kernel& kernel, int fd, std::string path) : kernel_(&kernel), fd_(fd), path_(std::move(path)) {}
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  std::string path_;
};

// Whether `name` is one plain path component: not empty, no '/', no NUL, not "." or "..", at most 255 bytes.
bool is_plain_name(std::string_view name);

// Makes `directory` hold a file of that name with these bytes, all of them or none, and durable when this returns. Two
// who do so at the same time need different `temporary` names.
Status publish_file(const Directory& directory, std::string_view name, ByteView bytes, std::string_view temporary);

class HeldFile;

// An exclusive lock on a file, held until this object dies or the process does: of flock where the file system has it,
// else of the whole file by fcntl, else by a file beside it that only one can make (docs/locks.md).
class FileLock {
 public:
  // Tries until `wait_s` seconds are over. Code::busy names the path and what the holder wrote into it.
  static Result<FileLock> acquire(const Directory& directory, std::string_view name, std::string_view holder_text,
                                  double wait_s);
  // Whether somebody has it. Makes no file; who acquires it at this very moment may have to try once more.
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

// Page-aligned heap memory, for O_DIRECT.
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
