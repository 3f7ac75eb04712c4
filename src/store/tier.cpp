#include "store/tier.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

#include "store/names.hpp"
#include "store/survey.hpp"
#include "sys/cgroup.hpp"
#include "sys/memory.hpp"
#include "sys/process.hpp"

namespace diapause::store {

const char* tier_name(config::TierKind kind) {
  switch (kind) {
    case config::TierKind::memory:
      return "memory";
    case config::TierKind::local:
      return "local";
    case config::TierKind::global:
      return "global";
  }
  return "unknown";
}

namespace {

// Opens a job's directory if it has an identity. It gets that only after every directory down to it
// was synced, therefore none of them needs to be synced again.
Result<sys::Directory> open_settled(sys::Kernel& kernel, const std::string& root,
                                    const std::string& job) {
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, sys::Directory::open_private(kernel, root));
  directory.ask_storage();
  DIAPAUSE_TRY_ASSIGN(directory, directory.open_child(job));
  DIAPAUSE_TRY(directory.open_file(kIdentityName, sys::Access::read));
  return directory;
}

Result<sys::Directory> open_job(sys::Kernel& kernel, const std::string& root,
                                const std::string& job, bool create) {
  if (create) {
    if (auto settled = open_settled(kernel, root, job)) return settled;
  }
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, create
                                                    ? sys::Directory::make_private(kernel, root)
                                                    : sys::Directory::open_private(kernel, root));
  directory.ask_storage();
  return create ? directory.make_child(job) : directory.open_child(job);
}

// A node's directory is synced before the first lock is made in it, therefore one that has a lock
// does not need to be synced again.
Result<sys::Directory> open_node(const sys::Directory& job, const std::string& node, bool create) {
  auto there = job.open_child(node);
  const bool is_settled = there && there->open_file(kLockName, sys::Access::read);
  return create && !is_settled ? job.make_child(node) : std::move(there);
}

}  // namespace

Result<Tier> Tier::open(sys::Kernel& kernel, config::TierKind kind, const std::string& root,
                        const std::string& job, const std::string& node, bool create) {
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, open_job(kernel, root, job, create));
  sys::Directory of_job;
  if (!node.empty()) {
    of_job = std::move(directory);
    DIAPAUSE_TRY_ASSIGN(directory, open_node(of_job, node, create));
  }
  // Nothing is lost with spare files, therefore a directory of them that is there is not synced.
  auto spare = directory.open_child(kSpareDirectory);
  if (!spare && create) spare = directory.make_child(kSpareDirectory);
  if (!spare) return fail(std::move(spare.error()));
  Tier tier(kind, job, std::move(directory), std::move(*spare));
  tier.of_job_ = std::move(of_job);
  return tier;
}

Status Tier::lock(const std::string& holder, double wait_s) {
  DIAPAUSE_TRY_ASSIGN(lock_, sys::FileLock::acquire(directory_, kLockName, holder, wait_s));
  return {};
}

Status Tier::leave(const std::string& node) {
  unlock();  // some locks are files of their own, which their holder removes
  return of_job_.remove_child(node);
}

Status Tier::clear_spares() const {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> left, spare_.list());
  for (const sys::DirectoryEntry& entry : left) {
    DIAPAUSE_TRY(entry.is_directory ? spare_.remove_child(entry.name)
                                    : spare_.remove_file(entry.name));
  }
  return directory_.remove_child(kNextDirectory);
}

Result<std::vector<FoundVersion>> Tier::scan() const { return scan_versions(directory_, job_); }

Result<ImageReader> Tier::open_image(const format::VersionId& version, const std::string& file_name,
                                     const ExpectedImage& expected) const {
  return open_image_in(directory_, version, file_name, expected);
}

// Files are rounded up a little so that regions may grow somewhat without a new file.
std::uint64_t Tier::rounded_capacity(std::uint64_t bytes) const {
  return round_up(bytes, bytes > 16 * kMiB ? kMiB : kPageBytes);
}

bool Tier::is_in_memory() const {
  const auto space = directory_.space();
  return space && space->is_memory;
}

namespace {

// The program and its libraries grow without asking, so a part of the memory stays free. Libraries
// grow by some megabytes whatever the limit is, therefore the part is greater where the limit is
// small.
std::uint64_t left_to_others(std::uint64_t limit) {
  return std::max(limit / 64, std::min(limit / 32, 32 * kMiB));
}

std::uint64_t left_in(const sys::MemoryRoom& room) {
  return room.left - std::min(room.left, left_to_others(room.limit));
}

}  // namespace

// `own_promise`: what is promised to the one who asks.
Result<std::uint64_t> Tier::free_bytes(std::uint64_t own_promise) const {
  if (kind_ == config::TierKind::memory) return free_memory_bytes(own_promise);
  DIAPAUSE_TRY_ASSIGN(const sys::FileSystemSpace space, directory_.space());
  return space.free_bytes;
}

// A file system in memory may have room for more than the machine, or the job's memory cgroup, can
// give. The program would be killed if that were used up.
Result<std::uint64_t> Tier::free_memory_bytes(std::uint64_t own_promise) const {
  // First, so that what is filled meanwhile counts twice, not never.
  std::uint64_t promised = promised_bytes();
  promised -= std::min(promised, own_promise);
  DIAPAUSE_TRY_ASSIGN(const sys::FileSystemSpace space, directory_.space());
  std::uint64_t free = space.free_bytes;
  if (const auto machine = sys::memory_of_machine(directory_.kernel()))
    free = std::min(free, left_in(*machine));
  for (const sys::MemoryRoom& group : sys::memory_of_cgroups(directory_.kernel())) {
    free = std::min(free, left_in(group));
  }
  return free - std::min(free, promised);
}

// Slots that ranks of the job have acquired on this machine and not filled yet: their files have
// their size from the start. Nodes that are emulated share a machine.
std::uint64_t Tier::promised_bytes() const {
  std::uint64_t promised = 0;
  const auto nodes = of_job_.list();
  if (!nodes) return 0;
  for (const sys::DirectoryEntry& node : *nodes) {
    const auto place =
        node.is_directory ? of_job_.open_child(node.name) : fail(Code::not_found, node.name);
    const auto spare =
        place ? place->open_child(kSpareDirectory) : fail(Code::not_found, node.name);
    const auto files = spare ? spare->list() : fail(Code::not_found, node.name);
    if (!files) continue;
    for (const sys::DirectoryEntry& file : *files)
      promised += spare->missing_bytes_of(file.name).value_or(0);
  }
  return promised;
}

// Makes a new slot one that counts, if there is room for it. Ranks that do so at the same time see
// each other: both may find that there is too little, but never both that there is enough.
Status Tier::promise(Slot& slot, std::uint64_t bytes) {
  const Status promised = kind_ == config::TierKind::memory ? slot.file_.truncate(bytes) : Status();
  const std::uint64_t own_promise = kind_ == config::TierKind::memory && promised ? bytes : 0;
  DIAPAUSE_TRY_ASSIGN(std::uint64_t free, free_bytes(own_promise));
  if (free < bytes) {
    drop_spares();
    DIAPAUSE_TRY_ASSIGN(free, free_bytes(own_promise));
  }
  return free < bytes ? fail(no_room(bytes, free)) : promised;
}

Error Tier::no_room(std::uint64_t needed, std::uint64_t free) const {
  return {
      Code::full,
      fmt::format("the {} tier {} is full: {} bytes needed, {} free; make room, lower 'keep', or "
                  "choose another path",
                  tier_name(kind_), path(), needed, free)};
}

// The best spare that is large enough and would not waste more than half of itself: for a capture
// that with the newest content, else one without; of those the smallest.
std::optional<Slot> Tier::take_spare(std::uint64_t wanted, SlotUse use) {
  const auto rank = [use](const Slot& slot) {
    const std::uint64_t content =
        use == SlotUse::capture ? UINT64_MAX - slot.content_ : slot.content_;
    return std::pair(content, slot.capacity_);
  };
  auto best = spares_.end();
  for (auto it = spares_.begin(); it != spares_.end(); ++it) {
    const bool fits =
        it->capacity_ >= wanted && (it->capacity_ <= 2 * wanted || it->capacity_ <= kMiB);
    if (fits && (best == spares_.end() || rank(*it) < rank(*best))) best = it;
  }
  if (best == spares_.end()) return std::nullopt;
  Slot slot = std::move(*best);
  spares_.erase(best);
  if (use != SlotUse::capture) slot.content_ = 0;
  return slot;
}

Result<Slot> Tier::acquire(std::uint64_t bytes, std::uint32_t owner, SlotUse use) {
  const std::uint64_t wanted = rounded_capacity(bytes);
  const bool mapped = kind_ == config::TierKind::memory;
  take_back_lent();
  if (use == SlotUse::shrinking) {
    drop_spares();
  } else {
    while (auto spare = take_spare(wanted, use)) {
      if (spare->is_whole() && (use == SlotUse::later || spare->prepare()))
        return std::move(*spare);
      discard(std::move(*spare));
    }
  }
  if (const std::uint64_t limit = sys::file_size_limit(); wanted > limit) {
    return fail(
        Code::io,
        fmt::format("{}: a file of {} bytes is needed, and this process may only make files of {}; "
                    "raise the limit (ulimit -f)",
                    path(), wanted, limit));
  }
  DIAPAUSE_TRY_ASSIGN(Slot slot, create_slot(owner));
  if (Status room = promise(slot, wanted); !room) {
    discard(std::move(slot));
    return fail(std::move(room.error()));
  }
  if (use == SlotUse::shrinking) {
    slot.capacity_ = wanted;
    return slot;
  }
  if (use == SlotUse::later) {
    slot.capacity_ = slot.unprepared_ = wanted;
    slot.is_to_be_mapped_ = mapped;
    return slot;
  }
  if (Status sized = slot.resize(wanted, mapped); !sized) {
    discard(std::move(slot));
    return fail(sized.error().code == Code::full ? no_room(wanted, free_bytes().value_or(0))
                                                 : sized.error());
  }
  return slot;
}

void Tier::keep_one_ready(std::uint64_t bytes, std::uint32_t owner, std::uint64_t least_free,
                          const std::atomic<bool>& stop) {
  take_back_lent();
  auto slot = take_spare(rounded_capacity(bytes), SlotUse::capture);
  drop_spares();
  if (!slot) {
    const auto free = free_bytes();
    if (!free || *free < std::max(bytes, least_free)) return;
    auto made = acquire(bytes, owner, SlotUse::later);
    if (!made) return;
    slot = std::move(*made);
  }
  if (!prepare_until(*slot, stop)) return discard(std::move(*slot));
  give_back(std::move(*slot));
}

// The slot is prepared in steps. A caller that needs it at once does the rest faster than this
// thread, which gives way to all others, and the program may come to need the memory itself.
Status Tier::prepare_until(Slot& slot, const std::atomic<bool>& stop) const {
  constexpr std::uint64_t kLeastStep = 64 * kMiB;
  // A machine may take milliseconds to find memory for each large page.
  constexpr std::uint64_t kLargeStep = 16 * kMiB;
  const std::uint64_t wanted = slot.unprepared_;
  const std::uint64_t step =
      std::max(kLeastStep, wanted / 8);  // each step looks at all pages of those before
  for (std::uint64_t done = step; done < wanted && !stop; done += step) {
    for (std::uint64_t at = done - step; at < done && !stop; at += kLargeStep) {
      if (slot.is_to_be_mapped_)
        slot.file_.back_by_large_pages(at, std::min(at + kLargeStep, done));
    }
    if (stop) break;
    DIAPAUSE_TRY(slot.file_.reserve_front(done));
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t free, free_bytes(wanted - done));
    if (free < wanted - done) return fail(no_room(wanted - done, free));
  }
  return stop ? Status() : slot.prepare();
}

// Under a name that no file has, whoever has left it there.
Result<Slot> Tier::create_slot(std::uint32_t owner) {
  while (true) {
    Slot slot;
    slot.name_ = fmt::format("o{}-{}", owner, next_name_++);
    auto file = spare_.create_new_file(slot.name_, kind_ != config::TierKind::memory);
    if (file) {
      slot.file_ = std::move(*file);
      return slot;
    }
    if (file.error().os_errno == EEXIST) continue;
    (void)spare_.remove_file(slot.name_);  // it may be there and not pass for what was asked for
    return fail(std::move(file.error()));
  }
}

void Tier::succeed(Tier before) {
  next_name_ = std::max(next_name_, before.next_name_);
  if (!spare_.is_same_as(before.spare_)) return;
  for (Slot& slot : before.lent_) lent_.push_back(std::move(slot));
}

void Tier::lend(Slot slot) { lent_.push_back(std::move(slot)); }

// Each slot is asked for by its name: the directory has the files of all ranks of the node.
void Tier::take_back_lent() {
  for (auto slot = lent_.begin(); slot != lent_.end();) {
    if (take_back(*slot)) {
      give_back(std::move(*slot));
      slot = lent_.erase(slot);
    } else if (slot->file_.has_no_name()) {
      slot = lent_.erase(slot);
    } else {
      ++slot;
    }
  }
}

bool Tier::take_back(const Slot& slot) const {
  const std::string returned = returned_name(slot.name_);
  return compare(slot.file_, spare_, returned) && spare_.rename(returned, spare_, slot.name_);
}

Result<Slot> Tier::borrow(const std::string& name, const sys::FileId& id) const {
  const bool direct = kind_ != config::TierKind::memory;
  Slot slot;
  DIAPAUSE_TRY_ASSIGN(slot.file_, spare_.open_file(name, sys::Access::read_write, direct));
  if (slot.file_.id() != id) {
    return fail(Code::io,
                slot.file_.path() + " is another file than the one that was captured into");
  }
  DIAPAUSE_TRY_ASSIGN(slot.capacity_, slot.file_.size());
  slot.name_ = name;
  slot.is_borrowed_ = true;
  return slot;
}

void Tier::return_unused(const std::string& name) const {
  (void)spare_.rename(name, spare_, returned_name(name));
}

Result<sys::File> Tier::open_spare(const std::string& name) const {
  return spare_.open_file(name, sys::Access::read_write, true);
}

Result<sys::File> Tier::read_spare(const std::string& name) const {
  return spare_.open_file(name, sys::Access::read);
}

// If there are too many spare slots, the smallest is removed, because it is the cheapest to make
// again.
void Tier::give_back(Slot slot) {
  if (slot.is_borrowed_) return return_unused(slot.name_);
  spares_.push_back(std::move(slot));
  if (spares_.size() <= kSpares) return;
  const auto smallest =
      std::min_element(spares_.begin(), spares_.end(),
                       [](const Slot& a, const Slot& b) { return a.capacity_ < b.capacity_; });
  discard(std::move(*smallest));
  spares_.erase(smallest);
}

// The process that has lent the slot sees that it is gone.
void Tier::discard(Slot slot) {
  if (!slot.is_settled_) (void)spare_.remove_file(slot.name_);
}

void Tier::drop_spares() {
  for (Slot& spare : spares_) (void)spare_.remove_file(spare.name_);
  spares_.clear();
}

}  // namespace diapause::store
