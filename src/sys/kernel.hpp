// The system calls Diapause makes, one function each, so that tests can fail any of them.
//
// Functions return a value >= 0, or -errno. They do what the call of the same name does, no retries, no loops:
// sys/file.hpp is the robust layer everybody else uses. Paths are relative to a directory descriptor, or absolute with
// AT_FDCWD. Implementations are safe to call from several threads.
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
  // Takes O_DIRECT away from the descriptor. -EINVAL of the base implementation, whose files never have it.
  virtual int stop_direct(int fd);
  virtual int fsync(int fd) = 0;
  virtual int fallocate(int fd, std::uint64_t offset, std::uint64_t length) = 0;
  virtual int ftruncate(int fd, std::uint64_t length) = 0;
  virtual int fstat(int fd, struct stat* out) = 0;
  // Of what is called `path` there; of a symbolic link the link itself. The base implementation opens it.
  virtual int fstatat(int directory, const char* path, struct stat* out);
  virtual int fstatvfs(int fd, FileSystemSpace* out) = 0;
  virtual int renameat(int from_directory, const char* from, int to_directory, const char* to) = 0;
  virtual int unlinkat(int directory, const char* path, int flags) = 0;
  virtual int mkdirat(int directory, const char* path, mode_t mode) = 0;
  // All entries but "." and "..", in no order.
  virtual int list(int directory, std::vector<DirectoryEntry>* out) = 0;
  // The path that leads to an open directory without any link, as it is now. -ENOSYS of the base implementation.
  virtual int real_path(int directory, std::string* out);
  // LOCK_EX | LOCK_NB.
  virtual int try_lock(int fd) = 0;
  // LOCK_UN: also takes the lock away from descriptors that a forked child still holds.
  virtual int unlock(int fd) = 0;
  // The same by F_OFD_SETLK, for file systems without flock. -ENOSYS of the base implementation.
  virtual int try_range_lock(int fd);
  virtual int unlock_range(int fd);
  // Shared, readable and writable, populated mapping of [0, length). nullptr with *error = errno on failure.
  virtual std::byte* map_shared(int fd, std::uint64_t length, int* error) = 0;
  virtual int unmap(std::byte* base, std::uint64_t length) = 0;
  // Private, readable and writable mapping of [offset, offset + length): pages come when they are touched, and writes
  // stay in this process. nullptr with *error = errno on failure, as of the base implementation, which has none.
  virtual std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* error);

  // What devices need, and files do not; the base implementations have none: -ENOSYS. perf_counter opens one counter of
  // the performance monitoring unit `type`, of everything that runs on processor `cpu`.
  virtual int perf_counter(std::uint32_t type, std::uint64_t config, int cpu);
  virtual std::int64_t read(int fd, MutableBytes data);
  virtual int ioctl(int fd, unsigned long request, void* argument);

  // A queue of writes in flight. The base implementation writes at once with pwrite.
  virtual std::unique_ptr<WriteQueue> write_queue(unsigned depth);
  // Whether these queues really have several transfers in flight.
  virtual bool has_queues() { return false; }
  // A queue of reads in flight. The base implementation reads at once with pread.
  virtual std::unique_ptr<ReadQueue> read_queue(unsigned depth);
};

// Several writes in flight to one or more files. A buffer must stay untouched until its ticket is done.
// Not thread-safe.
class WriteQueue {
 public:
  virtual ~WriteQueue() = default;
  // Starts writing all of `data` (short writes are continued). Returns a ticket >= 0, or -errno. Blocks if full.
  virtual std::int64_t submit(int fd, ByteView data, std::uint64_t offset) = 0;
  // Waits for the write of that ticket: 0 or -errno.
  virtual int wait(std::int64_t ticket) = 0;
};

// Several reads in flight, the other way round. Not thread-safe.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  // Starts filling all of `data` (short reads are continued). Returns a ticket >= 0, or -errno. Blocks if full.
  virtual std::int64_t submit(int fd, MutableBytes data, std::uint64_t offset) = 0;
  // Waits for the read of that ticket: 0 or -errno; -ENODATA if the file ends before.
  virtual int wait(std::int64_t ticket) = 0;
};

// The machine's kernel. One object serves the process; it has no state.
Kernel& real_kernel();

}  // namespace diapause::sys
