// How the versions of a tier appear and go away. The members of Tier that do this are here.
#include <fmt/core.h>

#include <utility>

#include "store/names.hpp"
#include "store/tier.hpp"

namespace diapause::store {

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

}  // namespace diapause::store
