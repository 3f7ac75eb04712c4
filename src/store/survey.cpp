#include "store/survey.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "store/identity.hpp"
#include "store/names.hpp"

namespace diapause::store {
namespace {

// A manifest larger than this is not one: 256 bytes for each of a million ranks.
constexpr std::uint64_t kLargestManifest = 256 * kMiB;

struct Expected {
  format::VersionId id;
  std::string_view job_key;  // empty for every job
};

Result<format::Manifest> read_manifest(const sys::Directory& directory, const char* name,
                                       const Expected& expected) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.open_file(name, sys::Access::read));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  if (size > kLargestManifest)
    return fail(Code::corrupt, fmt::format("{} has {} bytes", file.path(), size));
  ByteVector bytes(size);
  DIAPAUSE_TRY(file.read_exact(bytes, 0));
  auto manifest = format::decode_manifest(bytes);
  if (!manifest) return fail(manifest.error().code, file.path() + ": " + manifest.error().message);
  if (manifest->version != expected.id) {
    return fail(Code::corrupt, file.path() + " is the manifest of another version");
  }
  if (!expected.job_key.empty() && !is_key_of(expected.job_key, manifest->job)) {
    return fail(Code::corrupt,
                fmt::format("{} is the manifest of another job, '{}'", file.path(), manifest->job));
  }
  return manifest;
}

void read_manifests(const sys::Directory& directory, std::string_view job_key,
                    FoundVersion& found) {
  std::string missing;
  for (const char* copy : kManifestNames) {
    auto manifest = read_manifest(directory, copy, {found.id, job_key});
    if (manifest) {
      if (!found.manifest) found.manifest = std::move(*manifest);
    } else if (manifest.error().code == Code::not_found) {
      missing = fmt::format("{}/{} is missing", directory.path(), copy);
    } else {
      found.damaged_manifests.push_back(
          {fmt::format("{}/{}", directory.path(), copy), manifest.error().message});
      if (manifest.error().code != Code::corrupt) found.is_unreadable = true;
      if (is_of_the_moment(manifest.error().code)) found.is_of_the_moment = true;
    }
  }
  if (!found.damaged_manifests.empty()) {
    found.problem = found.damaged_manifests.front().what;
  } else if (found.manifest) {
    found.problem = missing;
  }
}

Result<FoundVersion> read_version(const sys::Directory& parent, const std::string& name,
                                  const Expected& expected) {
  FoundVersion found;
  found.id = expected.id;
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory, parent.open_child(name));
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, directory.list());
  for (const sys::DirectoryEntry& entry : entries) {
    if (const auto rank = parse_image_name(entry.name)) found.images.insert(*rank);
    if (const auto number = parse_shared_name(entry.name)) found.shared_files.insert(*number);
    if (const auto parity = parse_parity_name(entry.name)) found.parities.insert(*parity);
  }
  read_manifests(directory, expected.job_key, found);
  return found;
}

FoundVersion unreadable_version(const format::VersionId& id, const Error& why) {
  FoundVersion found;
  found.id = id;
  found.problem = why.message;
  found.is_unreadable = true;
  found.is_of_the_moment = is_of_the_moment(why.code);
  return found;
}

bool is_node_name(std::string_view name) {
  return name != kSpareDirectory && !parse_version_directory(name);
}

class Surveyor {
 public:
  Surveyor(config::TierKind kind, Survey& survey) : kind_(kind), survey_(survey) {}

  void root(const sys::Directory& directory) {
    for (const std::string& name : children(directory)) {
      if (is_job_key(name)) job(directory, name);
    }
    refuse_what_is_no_directory(directory);
  }

 private:
  // A job that is started refuses a link or a file where its directory should be.
  void refuse_what_is_no_directory(const sys::Directory& root) {
    const auto entries = root.list();
    if (!entries) return;  // the failure is told already
    for (const sys::DirectoryEntry& entry : *entries) {
      if (entry.is_directory || !is_job_key(entry.name)) continue;
      if (const auto opened = root.open_child(entry.name); !opened) problem(opened.error());
    }
  }

  void job(const sys::Directory& root, const std::string& key) {
    auto directory = root.open_child(key);
    if (!directory) return problem(directory.error());
    if (kind_ == config::TierKind::global) {
      const auto identity = read_identity(*directory);
      const bool is_copy = identity && standing_of(root, *directory, *identity) == Standing::copy;
      return place(std::move(*directory), {key, "", is_copy ? identity->home : ""});
    }
    for (const std::string& name : children(*directory)) {
      if (!is_node_name(name)) continue;
      auto node = directory->open_child(name);
      if (!node) {
        problem(node.error());
        continue;
      }
      place(std::move(*node), {key, name, ""});
    }
  }

  struct Label {
    std::string job, node, original;
  };
  void place(sys::Directory directory, const Label& label) {
    auto versions = scan_versions(directory, label.job);
    if (!versions) return problem(versions.error());
    survey_.places.push_back(
        {kind_, label.job, label.node, label.original, std::move(directory), std::move(*versions)});
  }

  std::vector<std::string> children(const sys::Directory& directory) {
    std::vector<std::string> names;
    auto entries = directory.list();
    if (!entries) {
      problem(entries.error());
      return names;
    }
    for (sys::DirectoryEntry& entry : *entries) {
      if (entry.is_directory) names.push_back(std::move(entry.name));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void problem(const Error& error) {
    if (error.code != Code::not_found)
      survey_.problems.push_back(error.message);  // otherwise the version has gone while we looked
  }

  config::TierKind kind_;
  Survey& survey_;
};

}  // namespace

Survey survey_root(sys::Kernel& kernel, config::TierKind kind, const std::string& root) {
  Survey survey;
  auto directory = sys::Directory::open_private(kernel, root);
  if (directory) {
    Surveyor(kind, survey).root(*directory);
  } else if (directory.error().code != Code::not_found) {
    survey.problems.push_back(directory.error().message);
  }
  return survey;
}

bool is_in_use(const SurveyedPlace& place) {
  return sys::FileLock::is_held(place.directory, kLockName);
}

Result<std::vector<FoundVersion>> scan_versions(const sys::Directory& place,
                                                std::string_view job_key) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, place.list());
  std::vector<FoundVersion> versions;
  for (const sys::DirectoryEntry& entry : entries) {
    const auto id = parse_version_directory(entry.name);
    if (!id) continue;
    auto found = read_version(place, entry.name, {*id, job_key});
    if (found) {
      versions.push_back(std::move(*found));
    } else if (found.error().code !=
               Code::not_found) {  // cannot be read: as good as not there, but said
      versions.push_back(unreadable_version(*id, found.error()));
    }
  }
  std::sort(versions.begin(), versions.end(),
            [](const auto& a, const auto& b) { return a.id > b.id; });
  return versions;
}

Result<FoundVersion> scan_version(const sys::Directory& place, const format::VersionId& id,
                                  std::string_view job_key) {
  auto found = read_version(place, version_directory(id), {id, job_key});
  if (found || found.error().code == Code::not_found) return found;
  return unreadable_version(id, found.error());
}

std::set<std::uint32_t> ranks_in(const FoundVersion& found, const format::Manifest* manifest) {
  std::set<std::uint32_t> ranks = found.images;
  for (std::uint32_t rank = 0; manifest != nullptr && rank < manifest->ranks.size(); ++rank) {
    if (found.shared_files.contains(manifest->ranks[rank].shared_file)) ranks.insert(rank);
  }
  return ranks;
}

Result<ImageReader> open_image_at(const sys::Directory& directory, const std::string& file_name,
                                  const ExpectedImage& expected) {
  DIAPAUSE_TRY_ASSIGN(sys::File file, directory.open_file(file_name, sys::Access::read));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  const std::string path = file.path();
  const std::uint64_t there = size - std::min(size, expected.offset);
  auto bytes =
      file_bytes(std::move(file), expected.offset, std::min(there, expected.record.file_bytes));
  DIAPAUSE_TRY_ASSIGN(ImageReader reader, ImageReader::open(std::move(bytes), path, expected));
  const auto space = directory.space();
  const bool is_memory = space && space->is_memory;
  DIAPAUSE_TRY_ASSIGN(sys::File direct, directory.open_file(file_name, sys::Access::read, true));
  reader.read_from(std::move(direct), expected.offset,
                   is_memory ? ImageReader::Storage::memory : ImageReader::Storage::disk);
  return reader;
}

Result<ImageReader> open_image_in(const sys::Directory& place, const format::VersionId& version,
                                  const std::string& file_name, const ExpectedImage& expected) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory, place.open_child(version_directory(version)));
  return open_image_at(directory, file_name, expected);
}

}  // namespace diapause::store
