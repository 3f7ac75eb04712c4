// A VolatileDisk is made of these files and directories. Each has what is visible now, and what
// would be left after the power went. Not thread-safe; the disk's mutex guards them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace diapause::test_support {

// Says which unsynced data survives.
enum class PowerLoss {
  lose_all,
  keep_names_lose_data,  // created, renamed and removed names stay; contents do not
  keep_data_lose_names,
  random,  // some pages of each file, and the first few changes of each directory
};

struct Survival {
  PowerLoss mode;
  std::mt19937_64 random;
};

// Zeroed address space of the size of the largest file. Its address is that of the file's mapping,
// so it never moves.
class FileMemory {
 public:
  static constexpr std::uint64_t kBytes = 256 * kMiB;
  FileMemory();
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;
  ~FileMemory();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

class Node {
 public:
  using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;
  // Entries set (or removed: nullptr) at one blow, as a rename within a directory does.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<Node>>>;

  Node(bool directory, mode_t mode_bits, uid_t owner_id, std::uint64_t number)
      : is_directory(directory), mode(mode_bits), owner(owner_id), inode(number) {}

  // These are for files.
  std::uint64_t size() const { return size_; }
  ByteView content() const { return {memory_ ? memory_->data() : nullptr, size_}; }
  std::shared_ptr<FileMemory> memory();  // made when it is first asked for
  std::uint64_t blocks() const;          // number of allocated blocks
  std::uint64_t blocks_missing(std::uint64_t offset, std::uint64_t length) const;
  void allocate(std::uint64_t offset, std::uint64_t length);
  void resize(std::uint64_t size);
  void write(ByteView data, std::uint64_t offset);
  void replace_durably(ByteView data);

  // These are for directories.
  const Entries& entries() const { return entries_; }
  std::shared_ptr<Node> find(std::string_view name) const;
  void apply(Change change);
  void replace_durably(const Change& change);

  void sync();
  // Becomes what survives, and so does everything in it.
  void lose_power(Survival& survival);

  const bool is_directory;
  mode_t mode;
  uid_t owner;
  const std::uint64_t inode;
  bool removed = false;  // a directory without a name takes no new entries
  int lock_holder = -1;  // descriptor of the holder

 private:
  static void apply_to(Entries& entries, const Change& change);
  void settle_names(Survival& survival);
  void settle_content(Survival& survival);

  std::shared_ptr<FileMemory> memory_;
  std::uint64_t size_ = 0;
  std::vector<bool> allocated_;  // for each page
  ByteVector durable_content_;

  Entries entries_;
  Entries durable_entries_;
  std::vector<Change> unsynced_;
};

}  // namespace diapause::test_support
