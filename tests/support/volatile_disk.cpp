#include "support/volatile_disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace diapause::test_support {
namespace {

constexpr std::size_t kLongestName = 255;

bool is_readable(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool is_writable(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

bool fits_a_file(std::uint64_t offset, std::uint64_t length) {
  return offset <= FileMemory::kBytes && length <= FileMemory::kBytes - offset;
}

bool contains(const Node& tree, const Node& wanted) {
  if (&tree == &wanted) return true;
  return std::any_of(tree.entries().begin(), tree.entries().end(),
                     [&](const auto& entry) { return contains(*entry.second, wanted); });
}

void collect_paths(const Node& directory, const std::string& prefix,
                   std::vector<std::string>* out) {
  for (const auto& [name, node] : directory.entries()) {
    out->push_back(prefix + name + (node->is_directory ? "/" : ""));
    if (node->is_directory)
      collect_paths(*node, std::string(out->back()), out);  // a copy: `out` moves as it grows
  }
}

// Does what rm -r does: no directory below takes new entries any more.
void mark_removed(Node& node) {
  node.removed = true;
  for (const auto& [name, child] : node.entries()) mark_removed(*child);
}

void collect_nodes(const Node& node, std::set<const Node*>* out) {
  out->insert(&node);
  for (const auto& [name, child] : node.entries()) collect_nodes(*child, out);
}

}  // namespace

VolatileDisk::VolatileDisk()
    : root_(std::make_shared<Node>(true, 0700, ::geteuid(), next_inode_++)) {}

// --- The world outside of the processes.

void VolatileDisk::power_loss(PowerLoss mode, std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  open_.clear();
  for (auto& [base, mapping] : mappings_) mapping.node.reset();
  Survival survival{mode, std::mt19937_64(seed)};
  root_->lose_power(survival);
}

void VolatileDisk::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_blocks_ = bytes / kPageBytes;
}

void VolatileDisk::refuse_direct_transfers() {
  const std::lock_guard lock(mutex_);
  refuses_direct_transfers_ = true;
}

bool VolatileDisk::is_transfer_allowed(int flags, ByteView data, std::uint64_t offset) const {
  if ((flags & O_DIRECT) == 0) return true;
  if (refuses_direct_transfers_) return false;
  return (reinterpret_cast<std::uintptr_t>(data.data()) | data.size() | offset) % kPageBytes == 0;
}

void VolatileDisk::refuse_direct() {
  const std::lock_guard lock(mutex_);
  refuses_direct_ = true;
}

std::vector<std::string> VolatileDisk::paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  collect_paths(*root_, "/", &result);
  return result;
}

std::optional<ByteVector> VolatileDisk::read_content(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const NodePtr node = node_at(path);
  if (node == nullptr || node->is_directory) return std::nullopt;
  return ByteVector(node->content().begin(), node->content().end());
}

bool VolatileDisk::write_content(const std::string& path, ByteView content) {
  const std::lock_guard lock(mutex_);
  const NodePtr node = node_at(path);
  if (node == nullptr || node->is_directory) return false;
  node->replace_durably(content);
  return true;
}

bool VolatileDisk::erase(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const Place place = look_up(AT_FDCWD, path);
  if (place.node == nullptr || place.directory == nullptr) return false;
  mark_removed(*place.node);
  place.directory->replace_durably(Node::Change{{place.name, nullptr}});
  return true;
}

bool VolatileDisk::set_owner(const std::string& path, uid_t owner) {
  const std::lock_guard lock(mutex_);
  const NodePtr node = node_at(path);
  if (node == nullptr) return false;
  node->owner = owner;
  return true;
}

// --- Finding things.

VolatileDisk::Place VolatileDisk::look_up(int directory, std::string_view path) const {
  if (path.empty()) return {-ENOENT, nullptr, "", nullptr};
  Place place{0, nullptr, "", root_};
  if (directory != AT_FDCWD && path[0] != '/') {
    const auto found = open_.find(directory);
    if (found == open_.end()) return {-EBADF, nullptr, "", nullptr};
    place.node = found->second.node;
  }
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (name.empty() || name == ".") continue;
    if (name.size() > kLongestName) return {-ENAMETOOLONG, nullptr, "", nullptr};
    if (place.node == nullptr) return {-ENOENT, nullptr, "", nullptr};
    if (!place.node->is_directory) return {-ENOTDIR, nullptr, "", nullptr};
    place = {0, place.node, std::string(name), place.node->find(name)};
  }
  return place;
}

VolatileDisk::NodePtr VolatileDisk::node_at(const std::string& path) const {
  return look_up(AT_FDCWD, path).node;
}

const VolatileDisk::OpenFile* VolatileDisk::file_of(int fd, int* error) const {
  const auto found = open_.find(fd);
  *error = found == open_.end() ? -EBADF : 0;
  return found == open_.end() ? nullptr : &found->second;
}

VolatileDisk::NodePtr VolatileDisk::make_node(const Place& place, bool directory, mode_t mode) {
  auto node = std::make_shared<Node>(directory, mode & 07777, ::geteuid(), next_inode_++);
  place.directory->apply({{place.name, node}});
  return node;
}

std::uint64_t VolatileDisk::free_blocks() const {
  std::set<const Node*> nodes;
  collect_nodes(*root_, &nodes);
  for (const auto& [fd, file] : open_) nodes.insert(file.node.get());
  for (const auto& [base, mapping] : mappings_) {
    if (mapping.node != nullptr) nodes.insert(mapping.node.get());
  }
  std::uint64_t used = 0;
  for (const Node* node : nodes) used += node->blocks();
  return capacity_blocks_ - std::min(used, capacity_blocks_);
}

// --- The calls, as open(2) and its neighbours describe them.

int VolatileDisk::openat(int directory, const char* path, int flags, mode_t mode) {
  const std::lock_guard lock(mutex_);
  if ((flags & O_DIRECT) != 0 && refuses_direct_) return -EINVAL;
  const Place place = look_up(directory, path);
  if (place.error != 0) return place.error;
  NodePtr node = place.node;
  if (node == nullptr) {
    if ((flags & O_CREAT) == 0 || place.directory->removed) return -ENOENT;
    node = make_node(place, false, mode);
  } else if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    return -EEXIST;
  }
  if (node->is_directory && (is_writable(flags) || (flags & O_CREAT) != 0)) return -EISDIR;
  if (!node->is_directory && (flags & O_DIRECTORY) != 0) return -ENOTDIR;
  if ((flags & O_TRUNC) != 0 && is_writable(flags)) node->resize(0);
  open_[next_fd_] = {node, flags};
  return next_fd_++;
}

int VolatileDisk::close(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  Node& node = *found->second.node;
  if (node.lock_holder == fd) node.lock_holder = -1;
  open_.erase(found);
  return 0;
}

std::int64_t VolatileDisk::pread(int fd, MutableBytes data, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  if (file->node->is_directory) return -EISDIR;
  if (!is_readable(file->flags)) return -EBADF;
  if (!is_transfer_allowed(file->flags, data, offset)) return -EINVAL;
  const ByteView content = file->node->content();
  if (offset >= content.size()) return 0;
  const std::size_t count = std::min<std::size_t>(data.size(), content.size() - offset);
  std::memcpy(data.data(), content.data() + offset, count);
  return static_cast<std::int64_t>(count);
}

std::int64_t VolatileDisk::pwrite(int fd, ByteView data, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  if (!is_writable(file->flags)) return -EBADF;
  if ((file->flags & O_APPEND) != 0) offset = file->node->size();
  if (!is_transfer_allowed(file->flags, data, offset)) return -EINVAL;
  if (!fits_a_file(offset, data.size())) return -EFBIG;
  Node& node = *file->node;
  // As much as fits is written. The disk is full only when nothing fits.
  const std::uint64_t room = free_blocks();
  while (!data.empty() && node.blocks_missing(offset, data.size()) > room) {
    const std::uint64_t last_page = (offset + data.size() - 1) / kPageBytes * kPageBytes;
    data = data.first(last_page > offset ? last_page - offset : 0);
    if (data.empty()) return -ENOSPC;
  }
  node.write(data, offset);
  return static_cast<std::int64_t>(data.size());
}

int VolatileDisk::stop_direct(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  found->second.flags &= ~O_DIRECT;
  return 0;
}

int VolatileDisk::fsync(int fd) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file != nullptr) file->node->sync();
  return error;
}

int VolatileDisk::fallocate(int fd, std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  if (!is_writable(file->flags)) return -EBADF;
  if (length == 0) return -EINVAL;
  if (!fits_a_file(offset, length)) return -EFBIG;
  Node& node = *file->node;
  if (node.blocks_missing(offset, length) > free_blocks()) return -ENOSPC;
  if (offset + length > node.size()) node.resize(offset + length);
  node.allocate(offset, length);
  return 0;
}

int VolatileDisk::ftruncate(int fd, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  if (!is_writable(file->flags)) return -EINVAL;
  if (!fits_a_file(0, length)) return -EFBIG;
  file->node->resize(length);
  return 0;
}

int VolatileDisk::fstat(int fd, struct stat* out) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  describe(*file->node, out);
  return 0;
}

int VolatileDisk::fstatat(int directory, const char* path, struct stat* out) {
  const std::lock_guard lock(mutex_);
  const Place place = look_up(directory, path);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  describe(*place.node, out);
  return 0;
}

void VolatileDisk::describe(const Node& node, struct stat* out) {
  *out = {};
  out->st_ino = node.inode;
  out->st_nlink = node.removed ? 0 : 1;
  out->st_mode = node.mode | static_cast<mode_t>(node.is_directory ? S_IFDIR : S_IFREG);
  out->st_uid = node.owner;
  out->st_size = static_cast<off_t>(node.size());
  out->st_blocks = static_cast<blkcnt_t>(node.blocks() * (kPageBytes / 512));
}

int VolatileDisk::fstatvfs(int fd, sys::FileSystemSpace* out) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  if (file_of(fd, &error) != nullptr)
    *out = {free_blocks() * kPageBytes, capacity_blocks_ * kPageBytes, is_memory_};
  return error;
}

int VolatileDisk::check_rename(const Place& from, const Place& to) const {
  if (from.error != 0 || to.error != 0) return from.error != 0 ? from.error : to.error;
  if (from.directory == nullptr || to.directory == nullptr) return -EBUSY;
  if (from.node == nullptr || to.directory->removed) return -ENOENT;
  if (from.node->is_directory && contains(*from.node, *to.directory)) return -EINVAL;
  if (to.node == nullptr || to.node == from.node) return 0;
  if (from.node->is_directory && !to.node->is_directory) return -ENOTDIR;
  if (!from.node->is_directory && to.node->is_directory) return -EISDIR;
  return to.node->entries().empty() ? 0 : -ENOTEMPTY;
}

int VolatileDisk::renameat(int from_directory, const char* from_path, int to_directory,
                           const char* to_path) {
  const std::lock_guard lock(mutex_);
  const Place from = look_up(from_directory, from_path);
  const Place to = look_up(to_directory, to_path);
  if (const int error = check_rename(from, to); error != 0) return error;
  if (to.node == from.node) return 0;
  if (to.node != nullptr) to.node->removed = true;
  if (from.directory == to.directory) {
    from.directory->apply({{from.name, nullptr}, {to.name, from.node}});
  } else {
    to.directory->apply({{to.name, from.node}});
    from.directory->apply({{from.name, nullptr}});
  }
  return 0;
}

int VolatileDisk::unlinkat(int directory, const char* path, int flags) {
  const std::lock_guard lock(mutex_);
  const Place place = look_up(directory, path);
  if (place.error != 0) return place.error;
  if (place.directory == nullptr) return -EBUSY;
  if (place.node == nullptr) return -ENOENT;
  const bool wants_directory = (flags & AT_REMOVEDIR) != 0;
  if (place.node->is_directory != wants_directory) return wants_directory ? -ENOTDIR : -EISDIR;
  if (!place.node->entries().empty()) return -ENOTEMPTY;
  place.node->removed = true;
  place.directory->apply(Node::Change{{place.name, nullptr}});
  return 0;
}

int VolatileDisk::mkdirat(int directory, const char* path, mode_t mode) {
  const std::lock_guard lock(mutex_);
  const Place place = look_up(directory, path);
  if (place.error != 0) return place.error;
  if (place.node != nullptr) return -EEXIST;
  if (place.directory->removed) return -ENOENT;
  make_node(place, true, mode);
  return 0;
}

int VolatileDisk::list(int directory, std::vector<sys::DirectoryEntry>* out) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(directory, &error);
  if (file == nullptr) return error;
  if (!file->node->is_directory) return -ENOTDIR;
  out->clear();
  for (const auto& [name, node] : file->node->entries()) out->push_back({name, node->is_directory});
  return 0;
}

int VolatileDisk::try_lock(int fd) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file == nullptr) return error;
  Node& node = *file->node;
  if (node.lock_holder >= 0 && node.lock_holder != fd) return -EWOULDBLOCK;
  node.lock_holder = fd;
  return 0;
}

int VolatileDisk::unlock(int fd) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const OpenFile* file = file_of(fd, &error);
  if (file != nullptr && file->node->lock_holder == fd) file->node->lock_holder = -1;
  return error;
}

std::byte* VolatileDisk::map_shared(int fd, std::uint64_t length, int* error) {
  const std::lock_guard lock(mutex_);
  const OpenFile* file = file_of(fd, error);
  *error = -*error;
  if (file != nullptr && length == 0) *error = EINVAL;
  if (file != nullptr && (file->flags & O_ACCMODE) != O_RDWR) *error = EACCES;
  if (file != nullptr && file->node->is_directory) *error = ENODEV;
  if (file != nullptr && !fits_a_file(0, length)) *error = ENOMEM;
  if (*error != 0) return nullptr;
  const auto memory = file->node->memory();
  Mapping& mapping =
      mappings_.try_emplace(memory->data(), Mapping{memory, file->node, 0}).first->second;
  ++mapping.count;
  return memory->data();
}

// A copy, as if every page were touched at once.
std::byte* VolatileDisk::map_private(int fd, std::uint64_t offset, std::uint64_t length,
                                     int* error) {
  const std::lock_guard lock(mutex_);
  const OpenFile* file = file_of(fd, error);
  *error = -*error;
  if (file == nullptr) return nullptr;
  auto copy = std::make_unique<ByteVector>(length);
  const ByteView content = file->node->content();
  const ByteView rest = content.subspan(std::min<std::uint64_t>(offset, content.size()));
  std::ranges::copy(rest.first(std::min<std::uint64_t>(length, rest.size())), copy->begin());
  std::byte* const base = copy->data();
  private_mappings_[base] = std::move(copy);
  return base;
}

int VolatileDisk::unmap(std::byte* base, std::uint64_t) {
  const std::lock_guard lock(mutex_);
  if (private_mappings_.erase(base) > 0) return 0;
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return -EINVAL;
  if (--found->second.count == 0) mappings_.erase(found);
  return 0;
}

}  // namespace diapause::test_support
