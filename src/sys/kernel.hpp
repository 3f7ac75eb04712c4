// Has the system calls that Diapause makes, one function each, so that tests can make any of them
// fail.
//
// A function returns a value >= 0, or -errno. It does what the call of the same name does, without
// retries and loops; sys/file.hpp is the robust layer that everybody else uses. Paths are relative
// to a directory descriptor, or absolute with AT_FDCWD. Implementations are safe to call from
// several threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"

struct stat;

namespace diapause::sys {

class ReadQueue;
class WriteQueue;

struct DirectoryEntry {
  std::string name;
  bool is_directory;
};
struct FileSystemSpace {
  std::uint64_t free_bytes;  // for unprivileged users
  std::uint64_t total_bytes;
  bool is_memory = false;  // tmpfs, ramfs
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int openat(int directory, const char* path, int flags, mode_t mode) = 0;
  virtual int close(int fd) = 0;
  virtual std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) = 0;
  virtual std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) = 0;
  // Clears O_DIRECT on the descriptor. The base implementation, whose files never have it, returns
  // -EINVAL.
  virtual int stop_direct(int fd);
  virtual int fsync(int fd) = 0;
  virtual int fallocate(int fd, std::uint64_t offset, std::uint64_t length) = 0;
  virtual int ftruncate(int fd, std::uint64_t length) = 0;
  virtual int fstat(int fd, struct stat* out) = 0;
  // Describes the entry at `path`, which is the link itself for a symbolic link. The base
  // implementation opens it.
  virtual int fstatat(int directory, const char* path, struct stat* out);
  virtual int fstatvfs(int fd, FileSystemSpace* out) = 0;
  virtual int renameat(int from_directory, const char* from, int to_directory, const char* to) = 0;
  virtual int unlinkat(int directory, const char* path, int flags) = 0;
  virtual int mkdirat(int directory, const char* path, mode_t mode) = 0;
  // Lists all entries except "." and "..", in no order.
  virtual int list(int directory, std::vector<DirectoryEntry>* out) = 0;
  // Gives the present path of an open directory, without links. The base implementation returns
  // -ENOSYS.
  virtual int real_path(int directory, std::string* out);
  // Does LOCK_EX | LOCK_NB of flock.
  virtual int try_lock(int fd) = 0;
  // Does LOCK_UN of flock. It also releases the lock for descriptors that a forked child still
  // holds.
  virtual int unlock(int fd) = 0;
  // These do the same with F_OFD_SETLK, for file systems without flock. The base implementations
  // return -ENOSYS.
  virtual int try_range_lock(int fd);
  virtual int unlock_range(int fd);
  // Backs what it can of [begin, end) of a file in memory by large pages (large_pages.hpp). The
  // base implementation does nothing.
  virtual void back_by_large_pages(int fd, std::uint64_t begin, std::uint64_t end);
  // Maps [0, length) shared, readable, writable and populated. Returns nullptr with *error = errno
  // on failure.
  virtual std::byte* map_shared(int fd, std::uint64_t length, int* error) = 0;
  virtual int unmap(std::byte* base, std::uint64_t length) = 0;
  // Maps [offset, offset + length) private, readable and writable. Pages are read when they are
  // first touched, and writes stay in this process. Returns nullptr with *error = errno on failure;
  // the base implementation always fails.
  virtual std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* error);
  // Makes whole pages of such a mapping readable. Fails where touching one would end the process
  // with SIGBUS. The base implementation does nothing.
  virtual int populate(std::byte* base, std::uint64_t length);

  // These calls are for devices only, and the base implementations return -ENOSYS. perf_counter()
  // opens one counter of the performance monitoring unit `type`, for everything that runs on
  // processor `cpu`.
  virtual int perf_counter(std::uint32_t type, std::uint64_t config, int cpu);
  virtual std::int64_t read(int fd, MutableBytes data);
  virtual int ioctl(int fd, unsigned long request, void* argument);

  // Returns a queue of writes in flight. The base implementation writes at once with pwrite.
  virtual std::unique_ptr<WriteQueue> write_queue(unsigned depth);
  // Returns whether these queues really keep several transfers in flight.
  virtual bool has_queues() { return false; }
  // Returns a queue of reads in flight. The base implementation reads at once with pread.
  virtual std::unique_ptr<ReadQueue> read_queue(unsigned depth);
};

// Keeps several writes in flight to one or more files. A buffer must not change until its ticket is
// done. The class is not thread-safe.
class WriteQueue {
 public:
  virtual ~WriteQueue() = default;
  // Starts writing all of `data` (short writes are continued). Returns a ticket >= 0, or -errno.
  // Blocks while the queue is full.
  virtual std::int64_t submit(int fd, ByteView data, std::uint64_t offset) = 0;
  // Waits for the write of that ticket. Returns 0 or -errno.
  virtual int wait(std::int64_t ticket) = 0;
};

// Keeps several reads in flight. A buffer must not be used until its ticket is done. The class is
// not thread-safe.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  // Starts filling all of `data` (short reads are continued). Returns a ticket >= 0, or -errno.
  // Blocks while the queue is full.
  virtual std::int64_t submit(int fd, MutableBytes data, std::uint64_t offset) = 0;
  // Waits for the read of that ticket. Returns 0 or -errno; -ENODATA if the file ends before.
  virtual int wait(std::int64_t ticket) = 0;
};

// Returns the machine's kernel. One object serves the process; it has no state.
Kernel& real_kernel();

}  // namespace diapause::sys
