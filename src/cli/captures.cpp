#include "cli/captures.hpp"

#include <algorithm>

#include "store/names.hpp"

namespace diapause::cli {
namespace {

// The image of one rank, and its place.
struct Capture {
  const store::SurveyedPlace* place = nullptr;
  store::OrphanedImage orphan;
  std::uint64_t protected_bytes = 0;
};
using CapturesByRank = std::map<std::uint32_t, Capture>;

std::map<format::VersionId, CapturesByRank> captures_of(const Collection& collection,
                                                        const std::string& job) {
  std::map<format::VersionId, CapturesByRank> captures;
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.kind != config::TierKind::memory || place.job != job || store::is_in_use(place))
      continue;
    const auto orphans = store::find_orphaned_images(place.directory);
    if (!orphans) continue;  // treated like an empty place
    for (const store::OrphanedImage& orphan : *orphans) {
      const auto image = store::open_orphaned_image(place.directory, orphan);
      if (!image || orphan.header.owner >= orphan.header.rank_count) continue;
      std::uint64_t bytes = 0;
      for (const format::Region& region : image->index().regions)
        bytes += region.element_bytes * region.count;
      captures[orphan.header.version].try_emplace(orphan.header.owner,
                                                  Capture{&place, orphan, bytes});
    }
  }
  return captures;
}

// Returns the manifest that the next start would write.
format::Manifest manifest_of(const std::string& job_key, const format::VersionId& version,
                             const CapturesByRank& captures) {
  format::Manifest manifest;
  manifest.job = store::name_in_key(job_key);
  manifest.version = version;
  manifest.levels = 1u << 1;
  for (const auto& [rank, capture] : captures) {
    auto node = std::ranges::find(manifest.node_names, capture.place->node);
    if (node == manifest.node_names.end())
      node = manifest.node_names.insert(node, capture.place->node);
    format::RankRecord record;
    record.image = {capture.orphan.header.file_bytes, capture.orphan.header.index_digest};
    record.protected_bytes = capture.protected_bytes;
    record.node = static_cast<std::uint32_t>(node - manifest.node_names.begin());
    manifest.ranks.push_back(record);
  }
  return manifest;
}

void add_version(Collection& collection, const std::string& job, const CapturesByRank& captures,
                 VersionsById& versions) {
  const format::VersionId id = captures.begin()->second.orphan.header.version;
  const format::Manifest manifest = manifest_of(job, id, captures);
  CollectedVersion version;
  version.id = id;
  version.is_captured = true;
  std::map<const store::SurveyedPlace*, store::FoundVersion*> found_in;
  for (const auto& [rank, capture] : captures) {
    store::FoundVersion*& found = found_in[capture.place];
    if (found == nullptr) {
      found = &collection.captured.emplace_back();
      found->id = id;
      found->manifest = manifest;
      version.parts.push_back({capture.place, found, {}});
    }
    found->images.insert(rank);
    const auto part = std::ranges::find(version.parts, capture.place, &Part::place);
    part->captured.emplace(store::image_name(rank), capture.orphan);
  }
  version.manifest = &*version.parts.front().found->manifest;
  versions[id] = std::move(version);
}

}  // namespace

bool may_hold_captures(const sys::Directory& place, const Job& job) {
  const auto orphans = store::find_orphaned_images(place);
  if (!orphans) return true;  // if it cannot be read, nothing may be removed
  const CollectedVersion* const newest = job.newest();
  return std::ranges::any_of(*orphans, [&](const store::OrphanedImage& orphan) {
    return !job.finished.covers(orphan.header.version) &&
           (newest == nullptr || orphan.header.version > newest->id);
  });
}

void add_captures(Collection& collection, std::map<std::string, VersionsById>& jobs) {
  for (auto& [job, versions] : jobs) {
    std::optional<format::VersionId> newest;
    for (const auto& [id, version] : versions) {
      if (!version.unfinished()) newest = id;  // they are in ascending order
    }
    for (const auto& [id, captures] : captures_of(collection, job)) {
      const bool is_newer = !newest || id > *newest;
      const bool is_whole = captures.size() == captures.begin()->second.orphan.header.rank_count;
      if (is_newer && is_whole) add_version(collection, job, captures, versions);
    }
  }
}

}  // namespace diapause::cli
