// The catalogue of versions, equal on all ranks, and this process's files in them. It makes no
// decisions: the folder policy decides what to keep.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/job/context.hpp"
#include "format/manifest.hpp"
#include "store/slot.hpp"

namespace diapause::engine {

struct KnownVersion {
  format::Manifest manifest;
  std::array<bool, 3> in{};  // whether it has files in a tier, by config::TierKind
  // A restart has stepped over it; it is removed when the next version is published.
  bool rejected = false;

  bool is_in(config::TierKind kind) const { return in[static_cast<std::size_t>(kind)]; }
};

// A file that this process wrote and keeps open for reuse.
struct OwnFile {
  format::VersionId version;
  config::TierKind kind;
  std::string name;
  store::Slot slot;
};

class Catalogue {
 public:
  const std::vector<KnownVersion>& versions() const { return versions_; }  // newest first
  void replace_all(std::vector<KnownVersion> versions) { versions_ = std::move(versions); }

  // Returns how many of the newest versions in the global tier are not exact.
  std::uint32_t lossy_in_a_row() const;

  // Inserts a version, or updates the manifest and places of a known one.
  void add(const format::Manifest& manifest, config::TierKind kind);
  void own(OwnFile file) { own_files_.push_back(std::move(file)); }
  // Checks, before a manifest names them, that this process's files of the version are still the
  // files with these names in that tier.
  Status prove(const store::Tier& tier, const format::VersionId& version) const;
  void reject(const format::VersionId& version);
  // The manifest of a version; none if it is not known.
  std::optional<format::Manifest> manifest_of(const format::VersionId& version) const;

  // Returns a slot for one file of each size in that tier. Versions are removed to make room
  // if necessary (make_room). Collective; each rank passes its own sizes.
  Result<std::vector<store::Slot>> acquire(const Context& context, config::TierKind kind,
                                           const std::vector<std::uint64_t>& sizes,
                                           store::SlotUse use = store::SlotUse::other);

  // Removes from that tier the version of the lowest level, and if there are several, the oldest of
  // them. The newest version there and the pinned one are never removed. Returns false if there is
  // none. Collective.
  Result<bool> make_room(const Context& context, config::TierKind kind);

  // Logs once, on the process that acts for the tier, if `file` is written there more slowly than
  // possible.
  void tell_of_slow_writes(const Context& context, const store::Tier& tier, const sys::File& file);

  // Removes the versions that the settings do not keep. Failures are logged and not returned,
  // because nothing is lost by keeping too much. Collective.
  void prune(const Context& context);

  // Keeps one more version than the settings say; nullopt ends that.
  void spare(std::optional<format::VersionId> version) { spared_ = version; }

  // Returns whether the last prune() has left the pinned version, which the settings do not keep.
  bool has_kept_pinned() const { return has_kept_pinned_; }

  // Undoes a checkpoint that failed before it was published. Collective.
  void discard(const Context& context, const format::VersionId& version, config::TierKind kind);

  // Keeps a version whatever the settings say. The program may have mapped files of a version that
  // is or was pinned: they are only removed, and never written again.
  void pin(std::optional<format::VersionId> version) {
    pinned_ = version;
    if (version) perhaps_mapped_.insert(*version);
  }

 private:
  // Removes a version from one tier. Collective.
  Status retire(const Context& context, const format::VersionId& version, config::TierKind kind);
  Status degrade(const Context& context, KnownVersion& version);
  void drop_redundancy_files(const Context& context, const KnownVersion& version,
                             config::TierKind kind);
  KnownVersion* find(const format::VersionId& version);
  void release_own(const Context& context, const format::VersionId& version, config::TierKind kind,
                   bool only_redundancy);

  std::vector<KnownVersion> versions_;
  std::vector<OwnFile> own_files_;
  std::optional<format::VersionId> pinned_;
  std::optional<format::VersionId> spared_;
  bool has_kept_pinned_ = false;
  std::set<format::VersionId> perhaps_mapped_;
  // Those from whose directories a file of this process was not taken out.
  std::set<format::VersionId> littered_;
  std::set<std::string> told_;  // messages on slow writes that were already logged
};

}  // namespace diapause::engine
