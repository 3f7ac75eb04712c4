// A file system in memory that forgets like a real one: contents are durable from the fsync of the
// file, names from the fsync of the directory, and power_loss() takes the rest away.
//
// A name moved between two directories becomes durable in each by itself, so it may be found in
// both or in neither. Paths start at its own root, also relative ones of AT_FDCWD; ".." and links
// are unknown. One file holds 256 MiB at most.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/volatile_node.hpp"
#include "sys/kernel.hpp"

namespace diapause::test_support {

class VolatileDisk final : public sys::Kernel {
 public:
  VolatileDisk();

  // All processes die, and what is not durable is lost as `mode` says. Earlier descriptors give
  // -EBADF from then on; earlier mappings stay readable and no longer reach the files.
  void power_loss(PowerLoss mode, std::uint64_t seed = 0);

  // Writes that need more fail with -ENOSPC. Only file contents take space, in pages of 4 KiB.
  void set_capacity(std::uint64_t bytes);
  void say_it_is_memory() { is_memory_ = true; }  // before anybody asks
  // Opens with O_DIRECT give -EINVAL. If not refused, such transfers must be aligned to 4 KiB, the
  // sector of the strictest disks.
  void refuse_direct();
  // Opens with O_DIRECT go well, and transfers then give -EINVAL.
  void refuse_direct_transfers();

  // These are for damage and inspection, from outside of any process. Changes are durable at once.
  // The result is false or nothing if there is no such path.
  std::vector<std::string> paths() const;  // all, sorted; directories end in '/'
  std::optional<ByteVector> read_content(const std::string& path) const;
  bool write_content(const std::string& path, ByteView content);  // content of an existing file
  bool erase(const std::string& path);  // with everything below: a lost node
  bool set_owner(const std::string& path, uid_t owner);

  int openat(int directory, const char* path, int flags, mode_t mode) override;
  int close(int fd) override;
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override;
  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override;
  int stop_direct(int fd) override;
  int fsync(int fd) override;
  int fallocate(int fd, std::uint64_t offset, std::uint64_t length) override;
  int ftruncate(int fd, std::uint64_t length) override;
  int fstat(int fd, struct stat* out) override;
  int fstatat(int directory, const char* path, struct stat* out) override;
  int fstatvfs(int fd, sys::FileSystemSpace* out) override;
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override;
  int unlinkat(int directory, const char* path, int flags) override;
  int mkdirat(int directory, const char* path, mode_t mode) override;
  int list(int directory, std::vector<sys::DirectoryEntry>* out) override;
  int try_lock(int fd) override;
  int unlock(int fd) override;
  std::byte* map_shared(int fd, std::uint64_t length, int* error) override;
  int unmap(std::byte* base, std::uint64_t length) override;
  std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* error) override;

 private:
  using NodePtr = std::shared_ptr<Node>;
  struct OpenFile {
    NodePtr node;
    int flags;
  };
  struct Mapping {
    std::shared_ptr<FileMemory> memory;
    NodePtr node;  // null after a power loss
    unsigned count;
  };
  // Where a path leads: its last component in its directory. node is null if there is no such
  // entry.
  struct Place {
    int error = 0;
    NodePtr directory;
    std::string name;
    NodePtr node;
  };

  // These are called with mutex_ held.
  Place look_up(int directory, std::string_view path) const;
  static void describe(const Node& node, struct stat* out);
  NodePtr node_at(const std::string& path) const;
  const OpenFile* file_of(int fd, int* error) const;
  bool is_transfer_allowed(int flags, ByteView data, std::uint64_t offset) const;
  NodePtr make_node(const Place& place, bool directory, mode_t mode);
  std::uint64_t free_blocks() const;
  int check_rename(const Place& from, const Place& to) const;

  mutable std::mutex mutex_;
  std::uint64_t next_inode_ = 1;
  NodePtr root_;
  int next_fd_ = 1 << 20;  // never used twice, so that one from before a power loss is not mistaken
                           // for a new one
  std::unordered_map<int, OpenFile> open_;
  std::map<std::byte*, Mapping> mappings_;
  std::map<std::byte*, std::unique_ptr<ByteVector>> private_mappings_;
  std::uint64_t capacity_blocks_ = std::uint64_t{1} << 32;
  bool is_memory_ = false;
  bool refuses_direct_ = false;
  bool refuses_direct_transfers_ = false;
};

}  // namespace diapause::test_support
