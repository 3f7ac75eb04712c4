// Files and directories that close themselves, retry EINTR, continue short reads and writes, and name the path in
// every error. All opens are relative to a Directory, refuse symbolic links, and create with mode 0600/0700.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

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
  bool is_direct() const;  // whether transfers go past the page cache

  // Both go through the page cache from the first transfer on that the file system refuses with O_DIRECT (EINVAL): it
  // may want other alignments, or find out only then. Fills all of `data`; a file that ends before is Code::corrupt
  // ("ends at byte N").
  Status read_exact(MutableBytes data, std::uint64_t offset) const;
  Status write_all(ByteView data, std::uint64_t offset) const;
  Status sync() const;
  // Reserves blocks for [0, length) and sets the size; falls back to ftruncate where the file system cannot reserve.
  Status reserve(std::uint64_t length) const;
  Status truncate(std::uint64_t length) const;
  Result<std::uint64_t> size() const;
  bool has_no_name() const;  // no directory holds it any more

 private:
  bool stops_direct(std::int64_t result) const;
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  mutable int flags_ = 0;  // less O_DIRECT where a transfer was refused
  std::string path_;
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

  // `direct` asks for O_DIRECT and falls back to buffered where it is refused. Opened files must be regular files owned
  // by this user (Code::denied otherwise).
  Result<File> open_file(std::string_view name, Access access, bool direct = false) const;
  Result<File> create_file(std::string_view name, bool direct = false) const;  // truncates an old one of that name

  Status rename(std::string_view from, const Directory& to_directory, std::string_view to) const;
  Status remove_file(std::string_view name) const;   // absent is fine
  Status remove_child(std::string_view name) const;  // recursive; absent is fine; never follows links
  Status sync() const;
  Result<std::vector<DirectoryEntry>> list() const;
  bool has_no_name() const;  // it was removed
  Result<FileSystemSpace> space() const;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Kernel& kernel() const { return *kernel_; }
  const std::string& path() const { return path_; }

 private:
  static Result<Directory> open_at(Kernel& kernel, int base, const std::string& name, const std::string& path);
  Directory(Kernel& kernel, int fd, std::string path) : kernel_(&kernel), fd_(fd), path_(std::move(path)) {}
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  std::string path_;
};

// Whether `name` is one plain path component: not empty, no '/', no NUL, not "." or "..", at most 255 bytes.
bool is_plain_name(std::string_view name);

// An exclusive lock on a file, held until this object dies or the process does.
class FileLock {
 public:
  // Tries until `wait_s` seconds are over. Code::busy names the path and what the holder wrote into it.
  static Result<FileLock> acquire(const Directory& directory, std::string_view name, std::string_view holder_text,
                                  double wait_s);
  // Whether somebody has it. Makes no file; who acquires it at this very moment may have to try once more.
  static bool is_held(const Directory& directory, std::string_view name);
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(File file) : file_(std::move(file)) {}
  File file_;
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
