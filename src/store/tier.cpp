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

Result<Tier> Tier::open(sys::Kernel& kernel, config::TierKind kind, const std::string& root,
                        const std::string& job, const std::string& node, bool create) {
  const auto descend = [&](const sys::Directory& from, const std::string& name) {
    return create ? from.make_child(name) : from.open_child(name);
  };
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, create
                                                    ? sys::Directory::make_private(kernel, root)
                                                    : sys::Directory::open_private(kernel, root));
  directory.ask_storage();
  DIAPAUSE_TRY_ASSIGN(directory, descend(directory, job));
  sys::Directory of_job;
  if (!node.empty()) {
    of_job = std::move(directory);
    DIAPAUSE_TRY_ASSIGN(directory, descend(of_job, node));
  }
  DIAPAUSE_TRY_ASSIGN(sys::Directory spare, descend(directory, kSpareDirectory));
  Tier tier(kind, job, std::move(directory), std::move(spare));
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

namespace {

// Returns the name of a borrowed slot that is free again. The name under which it was lent says
// that it is in use.
std::string returned_name(const std::string& lent_name) { return lent_name + ".free"; }

}  // namespace

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

Status Tier::make_version(const format::VersionId& version) {
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, directory_.make_child(version_directory(version)));
  made_before_ = std::move(made_);
  made_ = OpenVersion{version, std::move(directory), false, {}, 0};
  return {};
}

Status Tier::begin_version(const format::VersionId& version) {
  if (!next_) {
    DIAPAUSE_TRY(make_version(version));
  } else {
    made_before_ = std::move(made_);
    made_ = std::exchange(next_, std::nullopt);
    made_->version = version;
    made_->directory.was_renamed_to(directory_.path() + "/" + version_directory(version));
  }
  made_->is_new = true;
  return {};
}

Result<const sys::Directory*> Tier::directory_of(const format::VersionId& version,
                                                 sys::Directory& opened) const {
  if (made_ && made_->version == version) return &made_->directory;
  DIAPAUSE_TRY_ASSIGN(opened, directory_.open_child(version_directory(version)));
  return &opened;
}

Status Tier::settle(Slot& slot, const format::VersionId& version, const std::string& name) {
  DIAPAUSE_TRY(slot.file_.sync());
  sys::Directory opened;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory* const directory, directory_of(version, opened));
  DIAPAUSE_TRY(spare_.rename(slot.name_, *directory, name));
  slot.is_settled_ = true;
  return compare(slot.file_, *directory, name);
}

Status Tier::prove(const Slot& slot, const format::VersionId& version,
                   const std::string& name) const {
  sys::Directory opened;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory* const directory, directory_of(version, opened));
  return compare(slot.file_, *directory, name);
}

Status Tier::compare(const sys::File& file, const sys::Directory& directory,
                     const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(const sys::FileId there, directory.id_of(name));
  if (there == file.id()) return {};
  return fail(
      Code::io,
      fmt::format("{}/{} is not the file that was written: something else renames files there",
                  directory.path(), name));
}

Status Tier::sync_version(const format::VersionId& version) const {
  sys::Directory opened;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory* const directory, directory_of(version, opened));
  return directory->sync();
}

// Nobody finds what is written to a directory that was moved away, so a version there must not
// count as held.
Status Tier::publish(const format::Manifest& manifest) {
  const auto moved = [](const sys::Directory& one) {
    return fail(Code::io, one.path() + " was moved away, or is another directory by now");
  };
  const ByteVector bytes = format::encode_manifest(manifest);
  if (made_ && made_->version == manifest.version && lies_under_next(*made_))
    return directory_.was_moved() ? moved(directory_) : publish_next(*made_, bytes);
  sys::Directory opened;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory* const directory,
                      directory_of(manifest.version, opened));
  DIAPAUSE_TRY_ASSIGN(const sys::FileId there,
                      directory_.id_of(version_directory(manifest.version)));
  if (directory_.was_moved()) return moved(directory_);
  if (there != directory->id()) return moved(*directory);
  for (const char* copy : kManifestNames) {
    DIAPAUSE_TRY(sys::publish_file(*directory, copy, bytes, std::string(copy) + ".tmp"));
  }
  return {};
}

// Nobody reads what lies under next/, so the copies of the manifest are written over those of the
// version that had the directory before.
Status Tier::publish_next(OpenVersion& open, ByteView manifest) const {
  for (std::size_t copy = 0; copy < open.manifests.size(); ++copy) {
    sys::File& file = open.manifests[copy];
    file.was_renamed_to(open.directory.path() + "/" + kManifestNames[copy]);
    if (!file.is_open() || !compare(file, open.directory, kManifestNames[copy])) {
      DIAPAUSE_TRY_ASSIGN(file, open.directory.create_file(kManifestNames[copy]));
    }
    DIAPAUSE_TRY(file.write_all(manifest, 0));
    if (manifest.size() != open.manifest_bytes) DIAPAUSE_TRY(file.truncate(manifest.size()));
  }
  open.manifest_bytes = manifest.size();
  return directory_.rename(kNextDirectory, directory_, version_directory(open.version));
}

bool Tier::keeps_directories() const {
  return kind_ == config::TierKind::memory && directory_.is_volatile();
}

bool Tier::lies_under(const std::string& name, const OpenVersion& open) const {
  const auto there = directory_.id_of(name);
  return there && *there == open.directory.id();
}

bool Tier::lies_under_next(const OpenVersion& open) const {
  return keeps_directories() && lies_under(kNextDirectory, open);
}

// As a rule, the one before is the next to be removed.
Result<const sys::Directory*> Tier::directory_to_clear(const format::VersionId& version,
                                                       sys::Directory& opened) const {
  const std::string name = version_directory(version);
  for (const std::optional<OpenVersion>* const open : {&made_before_, &made_}) {
    if (!*open || (*open)->version != version) continue;
    if (lies_under_next(**open) || lies_under(name, **open)) return &(*open)->directory;
  }
  DIAPAUSE_TRY_ASSIGN(opened, directory_.open_child(name));
  return &opened;
}

bool Tier::recycle(Slot slot, const format::VersionId& version, const std::string& name) {
  if (!slot.is_open()) return false;
  sys::Directory opened;
  const auto directory = directory_to_clear(version, opened);
  if (!directory) return false;  // deleted from outside; the slot goes with it
  // The owner of a borrowed slot knows by this name that it is free.
  const std::string to = slot.is_borrowed_ ? returned_name(slot.name_) : slot.name_;
  if (!(*directory)->rename(name, spare_, to)) return false;
  slot.is_settled_ = false;
  if (!slot.is_borrowed_) give_back(std::move(slot));
  return true;
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

// Returns whether the directory of the version has been given the name next/.
bool Tier::moves_to_next(const format::VersionId& version) const {
  if (!keeps_directories()) return false;
  if (!made_before_ || made_before_->version != version || !made_before_->is_new) return false;
  const std::string name = version_directory(version);
  if (!lies_under(name, *made_before_)) return false;
  if (directory_.rename(name, directory_, kNextDirectory)) return true;
  const bool is_used = next_ || (made_ && lies_under_next(*made_));
  if (!is_used) (void)directory_.remove_child(kNextDirectory);  // another object has left it
  return false;
}

Status Tier::unpublish(const format::VersionId& version) const {
  if (moves_to_next(version)) return {};
  sys::Directory opened;
  const auto directory = directory_to_clear(version, opened);
  if (!directory) {
    if (directory.error().code == Code::not_found) return {};
    return fail(directory.error());
  }
  for (const char* name : kManifestNames) DIAPAUSE_TRY((*directory)->remove_file(name));
  return (*directory)->sync();
}

Status Tier::remove_file(const format::VersionId& version, const std::string& name) const {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory,
                      directory_.open_child(version_directory(version)));
  return directory.remove_file(name);
}

bool Tier::can_keep_directory(const format::VersionId& version) const {
  return made_before_ && made_before_->version == version && made_before_->is_new &&
         lies_under_next(*made_before_);
}

void Tier::keep_directory() { next_ = std::exchange(made_before_, std::nullopt); }

Status Tier::remove_version(const format::VersionId& version) const {
  DIAPAUSE_TRY(unpublish(version));
  return remove_unpublished(version);
}

Status Tier::remove_unpublished(const format::VersionId& version) const {
  for (const std::optional<OpenVersion>* const open : {&made_before_, &made_}) {
    if (*open && (*open)->version == version && lies_under_next(**open))
      DIAPAUSE_TRY(directory_.remove_child(kNextDirectory));
  }
  return directory_.remove_child(version_directory(version));
}

void Tier::drop_spares() {
  for (Slot& spare : spares_) (void)spare_.remove_file(spare.name_);
  spares_.clear();
}

}  // namespace diapause::store
