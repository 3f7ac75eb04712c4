#include "support/volatile_node.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace diapause::test_support {
namespace {

std::uint64_t pages_of(std::uint64_t bytes) { return round_up(bytes, kPageBytes) / kPageBytes; }

// Bytes of `content` in this page; empty where it has none.
ByteView page_of(ByteView content, std::uint64_t page) {
  const std::size_t begin = std::min<std::size_t>(page * kPageBytes, content.size());
  return content.subspan(begin, std::min<std::size_t>(kPageBytes, content.size() - begin));
}

}  // namespace

FileMemory::FileMemory() {
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  data_ = static_cast<std::byte*>(memory);
}

FileMemory::~FileMemory() { ::munmap(data_, kBytes); }

std::shared_ptr<FileMemory> Node::memory() {
  if (memory_ == nullptr) memory_ = std::make_shared<FileMemory>();
  return memory_;
}

std::uint64_t Node::blocks() const {
  return static_cast<std::uint64_t>(std::count(allocated_.begin(), allocated_.end(), true));
}

std::uint64_t Node::blocks_missing(std::uint64_t offset, std::uint64_t length) const {
  std::uint64_t missing = 0;
  for (std::uint64_t page = offset / kPageBytes; page < pages_of(offset + length); ++page) {
    missing += page >= allocated_.size() || !allocated_[page];
  }
  return missing;
}

void Node::allocate(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = pages_of(offset + length);
  if (allocated_.size() < end) allocated_.resize(end, false);
  for (std::uint64_t page = offset / kPageBytes; page < end; ++page) allocated_[page] = true;
}

void Node::resize(std::uint64_t size) {
  if (size < size_) {
    std::memset(memory()->data() + size, 0, size_ - size);
    allocated_.resize(std::min<std::uint64_t>(allocated_.size(), pages_of(size)));
  }
  if (size > 0) (void)memory();  // zeros that were never written are read and synced like others
  size_ = size;
}

void Node::write(ByteView data, std::uint64_t offset) {
  if (data.empty()) return;
  allocate(offset, data.size());
  std::memcpy(memory()->data() + offset, data.data(), data.size());
  size_ = std::max(size_, offset + data.size());
}

void Node::replace_durably(ByteView data) {
  resize(0);
  write(data, 0);
  sync();
}

std::shared_ptr<Node> Node::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

void Node::apply_to(Entries& entries, const Change& change) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      entries.erase(name);
    } else {
      entries[name] = node;
    }
  }
}

void Node::apply(Change change) {
  apply_to(entries_, change);
  unsynced_.push_back(std::move(change));
}

void Node::replace_durably(const Change& change) {
  apply_to(entries_, change);
  apply_to(durable_entries_, change);
  for (const auto& now : change) {
    for (Change& earlier : unsynced_) {
      std::erase_if(earlier, [&](const auto& entry) { return entry.first == now.first; });
    }
  }
}

void Node::sync() {
  if (is_directory) {
    durable_entries_ = entries_;
    unsynced_.clear();
  } else {
    durable_content_.assign(content().begin(), content().end());
  }
}

void Node::lose_power(Survival& survival) {
  lock_holder = -1;
  removed = false;  // otherwise we would not have come here
  if (!is_directory) return settle_content(survival);
  settle_names(survival);
  for (const auto& [name, node] : entries_) node->lose_power(survival);
}

void Node::settle_names(Survival& survival) {
  std::size_t surviving = 0;
  if (survival.mode == PowerLoss::keep_names_lose_data) surviving = unsynced_.size();
  if (survival.mode == PowerLoss::random) surviving = survival.random() % (unsynced_.size() + 1);
  // A journal is replayed from its beginning, so what survives of a directory's changes is the
  // first of them.
  for (std::size_t i = 0; i < surviving; ++i) apply_to(durable_entries_, unsynced_[i]);
  entries_ = durable_entries_;
  unsynced_.clear();
}

void Node::settle_content(Survival& survival) {
  if (survival.mode == PowerLoss::keep_data_lose_names) {
    sync();
  } else if (survival.mode == PowerLoss::random) {
    const bool keeps_size = survival.random() % 2 == 0;
    ByteVector mixed(keeps_size ? size_ : durable_content_.size());
    for (std::uint64_t page = 0; page < pages_of(mixed.size()); ++page) {
      ByteView source =
          page_of(survival.random() % 2 == 0 ? content() : ByteView(durable_content_), page);
      source = source.first(std::min<std::size_t>(source.size(), mixed.size() - page * kPageBytes));
      std::copy(source.begin(), source.end(),
                mixed.begin() + static_cast<std::ptrdiff_t>(page * kPageBytes));
    }
    durable_content_ = std::move(mixed);
  }
  // New memory: mappings made before the loss belong to processes that are no more, and must not
  // reach the file.
  memory_.reset();
  size_ = 0;
  allocated_.clear();
  const ByteVector survivors = durable_content_;
  write(survivors, 0);
}

}  // namespace diapause::test_support
