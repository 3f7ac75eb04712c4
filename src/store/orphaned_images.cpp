#include "store/orphaned_images.hpp"

#include "store/names.hpp"
#include "store/survey.hpp"

namespace diapause::store {
namespace {

using MaybeHeader = std::optional<format::ImageHeader>;

// Returns nothing for a file that is no image of a rank or cannot be read. Fails if it may be read
// a moment later.
Result<MaybeHeader> read_header(const sys::Directory& directory, const std::string& name) {
  const auto give_up = [](const Error& why) -> Result<MaybeHeader> {
    if (is_of_the_moment(why.code)) return fail(why);
    return MaybeHeader();
  };
  const auto file = directory.open_file(name, sys::Access::read);
  if (!file) return give_up(file.error());
  ByteVector page(format::kHeaderBytes);
  if (const Status read = file->read_exact(page, 0); !read) return give_up(read.error());
  auto header = format::decode_header(page);
  if (!header || header->kind != format::ImageKind::data || header->part != 0) return MaybeHeader();
  return MaybeHeader(*header);
}

Status look_in(const sys::Directory& place, const std::string& name,
               std::vector<OrphanedImage>& orphans) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory, place.open_child(name));
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, directory.list());
  for (const sys::DirectoryEntry& entry : entries) {
    if (entry.is_directory) continue;
    DIAPAUSE_TRY_ASSIGN(const MaybeHeader header, read_header(directory, entry.name));
    if (header) orphans.push_back({*header, name, entry.name});
  }
  return {};
}

}  // namespace

Result<std::vector<OrphanedImage>> find_orphaned_images(const sys::Directory& place) {
  std::vector<OrphanedImage> orphans;
  DIAPAUSE_TRY(look_in(place, kSpareDirectory, orphans));
  if (Status next = look_in(place, kNextDirectory, orphans);
      !next && next.error().code != Code::not_found)
    return fail(std::move(next.error()));
  DIAPAUSE_TRY_ASSIGN(const std::vector<FoundVersion> versions, scan_versions(place));
  for (const FoundVersion& version : versions) {
    if (version.is_of_the_moment) return fail(Code::again, version.problem);
    const bool was_one = version.manifest || !version.problem.empty();
    if (!was_one) DIAPAUSE_TRY(look_in(place, version_directory(version.id), orphans));
  }
  return orphans;
}

Result<OrphanedImage> find_orphaned_image(const sys::Directory& place, const std::string& directory,
                                          const std::string& file) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory from, place.open_child(directory));
  DIAPAUSE_TRY_ASSIGN(const MaybeHeader header, read_header(from, file));
  if (header) return OrphanedImage{*header, directory, file};
  return fail(Code::not_found, from.path() + "/" + file + " is no image");
}

Result<ImageReader> open_orphaned_image(const sys::Directory& place, const OrphanedImage& orphan) {
  const format::ImageHeader& header = orphan.header;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory, place.open_child(orphan.directory));
  return open_image_at(directory, orphan.file,
                       {header.kind,
                        header.version,
                        header.owner,
                        header.part,
                        header.rank_count,
                        {header.file_bytes, header.index_digest}});
}

Status settle_orphaned_image(const sys::Directory& place, const OrphanedImage& orphan) {
  const std::string version = version_directory(orphan.header.version);
  DIAPAUSE_TRY_ASSIGN(const sys::Directory to, place.make_child(version));
  DIAPAUSE_TRY_ASSIGN(const sys::Directory from, place.open_child(orphan.directory));
  DIAPAUSE_TRY_ASSIGN(const sys::File file, from.open_file(orphan.file, sys::Access::read_write));
  DIAPAUSE_TRY(file.sync());
  const std::string name = image_name(orphan.header.owner);
  if (orphan.directory == version && orphan.file == name) return {};
  return from.rename(orphan.file, to, name);
}

}  // namespace diapause::store
