#include "library/files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "format/checksum.hpp"
#include "sys/hard_links.hpp"
#include "sys/private_memory.hpp"

namespace diapause::library {
namespace {

constexpr std::size_t kLongestName = 255;  // of the name of a region

Status list_below(const sys::Directory& directory, const std::string& path, std::size_t depth,
                  std::vector<format::Region>& found) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, directory.list());
  for (const sys::DirectoryEntry& entry : entries) {
    const std::string name = path + entry.name;
    if (store::kFilePrefix.size() + name.size() > kLongestName || depth == store::kDeepestFile) {
      return fail(
          Code::argument,
          fmt::format("{}/{}: the path of a file in a version has at most {} bytes and {} parts",
                      directory.path(), entry.name, kLongestName - store::kFilePrefix.size(),
                      store::kDeepestFile));
    }
    if (entry.is_directory) {
      DIAPAUSE_TRY_ASSIGN(const sys::Directory child, directory.open_own_child(entry.name));
      DIAPAUSE_TRY(list_below(child, name + "/", depth + 1, found));
      continue;
    }
    DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.open_file(entry.name, sys::Access::read));
    if (sys::has_other_names(file)) {
      return fail(Code::denied, file.path() +
                                    " has another name (a hard link), by which it may "
                                    "change; copy the file");
    }
    format::Region region;
    region.name = std::string(store::kFilePrefix) + name;
    region.element_bytes = 1;
    DIAPAUSE_TRY_ASSIGN(region.count, file.size());
    region.stored_bytes = region.count;
    found.push_back(std::move(region));
  }
  return {};
}

Status write_file(const sys::Directory& root, const std::vector<std::string>& path,
                  store::ImageReader& image, std::size_t region) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file,
                      store::open_below(root, path, store::Opening::new_file));
  if (image.index().regions[region].raw_bytes() == 0) return {};
  DIAPAUSE_TRY_ASSIGN(const sys::PrivateMemory content, image.own_memory(region));
  return file.write_all(content.bytes(), 0);
}

}  // namespace

Files::~Files() {
  if (!place_.is_open()) return;
  for (const std::string& name : {out_name(), restored_name()}) {
    const Status removed = place_.remove_child(name);
    if (!removed) context_.log(Severity::warning, removed.error().message);
  }
}

std::string Files::out_name() const { return fmt::format("out-r{}", context_.rank()); }
std::string Files::restored_name() const { return fmt::format("restored-r{}", context_.rank()); }

Result<sys::Directory> Files::make_empty(const std::string& name) {
  store::Tier* tier = context_.tiers.find(config::TierKind::local);
  if (tier == nullptr) {
    DIAPAUSE_TRY_ASSIGN(tier, context_.tiers.get(config::TierKind::memory));
  }
  DIAPAUSE_TRY_ASSIGN(place_, tier->directory().make_child(kFilesName));
  auto made = place_.make_child(name);
  if (made && empty(*made)) return made;
  DIAPAUSE_TRY(place_.remove_child(name));  // the program has changed who may use it
  return place_.make_child(name);
}

Status Files::empty(const sys::Directory& directory) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, directory.list());
  for (const sys::DirectoryEntry& entry : entries) DIAPAUSE_TRY(directory.remove_child(entry.name));
  return {};
}

// The directory itself stays: on a disk that is told of blocks that are free again, its removal
// would wait for everything that the background writes.
void Files::empty_and_close(sys::Directory& directory) {
  if (!directory.is_open()) return;
  const Status emptied = empty(directory);
  if (!emptied) context_.log(Severity::warning, emptied.error().message);
  directory = {};
}

void Files::clear(const store::Tier& of_node) {
  (void)of_node.directory().remove_child(kFilesName);
}

Result<std::string> Files::begin() {
  DIAPAUSE_TRY_ASSIGN(out_, make_empty(out_name()));
  return out_.real_path();
}

Result<std::vector<format::Region>> Files::list() const {
  std::vector<format::Region> found;
  DIAPAUSE_TRY(list_below(out_, "", 0, found));
  std::ranges::sort(found, {}, &format::Region::name);
  return found;
}

void Files::end() { empty_and_close(out_); }

Result<std::string> Files::restore(store::ImageReader& image) {
  DIAPAUSE_TRY_ASSIGN(restored_, make_empty(restored_name()));
  const std::vector<format::Region>& regions = image.index().regions;
  for (std::size_t region = 0; region < regions.size(); ++region) {
    DIAPAUSE_TRY_ASSIGN(const auto path, store::path_in_name(regions[region].name));
    if (path) DIAPAUSE_TRY(write_file(restored_, *path, image, region));
  }
  return restored_.real_path();
}

void Files::end_restored() { empty_and_close(restored_); }

Result<std::shared_ptr<const sys::File>> FilesSource::open(std::size_t file) {
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr && opened_ == file) return file_;
  DIAPAUSE_TRY_ASSIGN(const auto path, store::path_in_name(files_[file].name));
  DIAPAUSE_TRY_ASSIGN(sys::File opened, store::open_below(root_, *path, store::Opening::old_file));
  file_ = std::make_shared<const sys::File>(std::move(opened));
  opened_ = file;
  return file_;
}

Result<std::uint64_t> FilesSource::copy(std::size_t region, std::uint64_t offset, MutableBytes to) {
  if (region < memory_regions_) return memory_.copy(region, offset, to);
  DIAPAUSE_TRY_ASSIGN(const std::shared_ptr<const sys::File> file, open(region - memory_regions_));
  DIAPAUSE_TRY(file->read_exact(to, offset));
  return format::checksum64(to);
}

}  // namespace diapause::library
