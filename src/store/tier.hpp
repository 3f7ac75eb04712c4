// A place that holds versions of one job: a node's memory or local disk, or the global directory.
// It knows how files become visible and how they go away, but knows no levels.
//
// To publish a version, every file is written under spare/, synced and renamed into its version
// directory; then the file that lies there under its name is proven to be this one. When all ranks
// have done so, the directory is synced, and the manifest is written in the same way, twice. A
// version exists when one of its manifests does. A removal goes backwards: the manifests are
// removed first, then the directory is synced, then the rest is removed.
//
// On a file system in memory nothing is synced, and making and removing names is what a small
// version costs. There a memory tier removes a version by giving its directory the name next/,
// where nobody looks for versions. The next version is put together in it, manifests included,
// and published by giving the directory its name.
//
// Each rank has a Tier object of its own over the same directory. Not thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "format/manifest.hpp"
#include "store/image_reader.hpp"
#include "store/slot.hpp"
#include "sys/file.hpp"

namespace diapause::store {

struct DamagedFile {
  std::string path;
  std::string what;

  bool operator==(const DamagedFile&) const = default;
};

// Describes what a tier has under the name of one version. Only names are looked at; images are
// verified when they are opened.
struct FoundVersion {
  format::VersionId id;
  std::optional<format::Manifest> manifest;  // it is sound, and belongs to this version and job
  std::set<std::uint32_t> images;            // in files of their own
  std::set<std::uint32_t> shared_files;      // global: which images they hold, the manifest says
  std::set<std::pair<std::uint32_t, std::uint32_t>> parities;
  std::vector<DamagedFile> damaged_manifests;  // copies that are there and damaged
  // Says why there is no manifest although there was one, or which copy of it is damaged or
  // missing. It is empty if all is well, and also if there never was a manifest, because the
  // checkpoint did not come to its end.
  std::string problem;
  bool is_unreadable = false;  // it cannot be read, and may be sound
  // Says that `problem` may be gone a moment later (diapause::is_of_the_moment).
  bool is_of_the_moment = false;

  bool operator==(const FoundVersion&) const = default;
};

class Tier {
 public:
  // `job` is a job_key; `node` is empty for the global tier. `create` makes what is missing; one
  // rank of the node does that before the others open with false.
  static Result<Tier> open(sys::Kernel& kernel, config::TierKind kind, const std::string& root,
                           const std::string& job, const std::string& node, bool create);

  config::TierKind kind() const { return kind_; }
  const std::string& path() const { return directory_.path(); }
  const sys::Directory& directory() const { return directory_; }
  // Returns whether it lies in this machine's memory; false if that cannot be asked.
  bool is_in_memory() const;

  // Takes the lock for as long as this object lives. One process of the node calls this; for the
  // global tier, one process of the job.
  Status lock(const std::string& holder, double wait_s);
  // Removes what earlier processes left in spare/ and next/. The holder of the lock calls this
  // before anybody acquires a slot.
  Status clear_spares() const;

  // Returns every version directory, newest first.
  Result<std::vector<FoundVersion>> scan() const;
  Result<ImageReader> open_image(const format::VersionId& version, const std::string& file,
                                 const ExpectedImage& expected) const;

  // Gives a file of at least `bytes` under spare/, recycled or new. `owner` keeps the names of
  // different ranks apart. Code::full names the tier, what is needed and what there is. In memory a
  // file counts from here on, also for other ranks of the node, whenever it is filled.
  Result<Slot> acquire(std::uint64_t bytes, std::uint32_t owner, SlotUse use = SlotUse::other);
  void give_back(Slot slot);  // one that was acquired and not settled
  void discard(Slot slot);    // the same, of one that is not to be used again

  // Between captures: of the slots that are free, keeps the one that the next capture of `bytes`
  // would get, and gives the memory of the others back. Makes one if there is none, so that its
  // pages are warm when it is needed; but not if less than `least_free` is free. A slot that cannot
  // be made is no error: acquire() will say what is wrong. Once `stop` is true, the rest is left to
  // acquire().
  void keep_one_ready(std::uint64_t bytes, std::uint32_t owner, std::uint64_t least_free,
                      const std::atomic<bool>& stop);

  // A slot that another process is to publish: it stays known here, and acquire() hands it out
  // again when the other has put it back. The other borrows it under its name, unmapped: what is
  // only published is never touched. Code::io if that name has become another file's.
  void lend(Slot slot);
  Result<Slot> borrow(const std::string& name, const sys::FileId& id) const;
  void return_unused(const std::string& name) const;  // one that was lent and not borrowed

  // Takes over from another object of the same tier and process, which cannot be used any more.
  // Slots that it has lent are still waited for if the directory is the same, and no name is given
  // twice.
  void succeed(Tier before);
  void unlock() { lock_.reset(); }
  // Removes the directory of this node, which the tier was opened with, and the lock in it. Nothing
  // can be done with the tier then.
  Status leave(const std::string& node);

  // A file that another rank has acquired, to write a part of it: Slot::name() there.
  Result<sys::File> open_spare(const std::string& name) const;
  Result<sys::File> read_spare(const std::string& name) const;  // it is read through the page cache
  // Leaves the directory of the version open for the calls below, until two others are made.
  Status make_version(const format::VersionId& version);
  // The same for a version that has never been there, and all of whose files come from the ranks of
  // this run. It gets the directory that keep_directory() has left, if there is one; that lies
  // under next/ until the version is published. If one rank's object is asked, those of the others
  // of the node must be, too.
  Status begin_version(const format::VersionId& version);
  // Syncs the slot, gives it its final name and proves it. It is not durable before sync_version().
  Status settle(Slot& slot, const format::VersionId& version, const std::string& name);
  // Checks that `name` in the version is this slot's file. If it is not, Code::io names the path.
  Status prove(const Slot& slot, const format::VersionId& version, const std::string& name) const;
  Status sync_version(const format::VersionId& version) const;
  Status publish(const format::Manifest& manifest);

  // Takes a file out of its version and keeps it for acquire(); its version must be unpublished.
  // Returns whether the file has left the version's directory.
  bool recycle(Slot slot, const format::VersionId& version, const std::string& name);
  Status unpublish(const format::VersionId& version) const;  // absent is fine
  // Returns whether the directory of a version of begin_version() is open here, and unpublish() has
  // given it the name next/.
  bool can_keep_directory(const format::VersionId& version) const;
  // Keeps that directory for begin_version(). The objects of all ranks of the node do so or none,
  // and each has taken its files out before.
  void keep_directory();
  Status remove_file(const format::VersionId& version, const std::string& name) const;
  Status remove_version(const format::VersionId& version) const;
  Status remove_unpublished(
      const format::VersionId& version) const;  // removes the rest after unpublish()
  void drop_spares();

 private:
  Tier(config::TierKind kind, std::string job, sys::Directory directory, sys::Directory spare)
      : kind_(kind),
        job_(std::move(job)),
        directory_(std::move(directory)),
        spare_(std::move(spare)) {}
  Result<std::uint64_t> free_bytes(std::uint64_t own_promise = 0) const;
  Result<std::uint64_t> free_memory_bytes(std::uint64_t own_promise) const;
  std::uint64_t promised_bytes() const;
  Status promise(Slot& slot, std::uint64_t bytes);
  void take_back_lent();
  bool take_back(const Slot& slot) const;
  Result<Slot> create_slot(std::uint32_t owner);
  Status prepare_until(Slot& slot, const std::atomic<bool>& stop) const;
  // The directory of a version that stays open, and the copies of the manifest in it.
  struct OpenVersion {
    format::VersionId version;
    sys::Directory directory;
    bool is_new = false;                 // made by begin_version()
    std::array<sys::File, 2> manifests;  // open if they have been written under next/
    std::uint64_t manifest_bytes = 0;
  };
  bool keeps_directories() const;
  bool lies_under(const std::string& name, const OpenVersion& open) const;
  bool lies_under_next(const OpenVersion& open) const;
  bool moves_to_next(const format::VersionId& version) const;
  Status publish_next(OpenVersion& open, ByteView manifest) const;
  // The directory of a version: the one that make_version() has left open, or `opened`, which
  // receives it.
  Result<const sys::Directory*> directory_of(const format::VersionId& version,
                                             sys::Directory& opened) const;
  // The same for a version that is to be removed, whose directory may be another one by now, or lie
  // under next/.
  Result<const sys::Directory*> directory_to_clear(const format::VersionId& version,
                                                   sys::Directory& opened) const;
  static Status compare(const sys::File& file, const sys::Directory& directory,
                        const std::string& name);
  std::optional<Slot> take_spare(std::uint64_t wanted, SlotUse use);
  Error no_room(std::uint64_t needed, std::uint64_t free) const;
  std::uint64_t rounded_capacity(std::uint64_t bytes) const;

  // A checkpoint needs two files of this rank at most: its image, and a copy or a parity.
  static constexpr std::size_t kSpares = 2;

  config::TierKind kind_;
  std::string job_;
  sys::Directory of_job_;  // the directory of the job, in which that of the node lies; not open for
                           // the global tier
  sys::Directory directory_;
  sys::Directory spare_;
  std::optional<OpenVersion> made_, made_before_;
  std::optional<OpenVersion> next_;  // for begin_version(); its version is unpublished
  std::optional<sys::FileLock> lock_;
  std::vector<Slot> spares_;
  std::vector<Slot> lent_;
  std::uint64_t next_name_ = 0;  // never goes back, see succeed()
};

const char* tier_name(config::TierKind kind);  // "memory", "local", "global"

}  // namespace diapause::store
