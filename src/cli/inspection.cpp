#include "cli/inspection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "cli/rebuilt_image.hpp"
#include "cli/text.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

std::string place_name(const store::SurveyedPlace& place) {
  return place.node.empty() ? store::tier_name(place.kind)
                            : fmt::format("{} {}", store::tier_name(place.kind), place.node);
}

std::string file_path(const Part& part, const std::string& name) {
  const auto captured = part.captured.find(name);
  if (captured != part.captured.end()) {
    const store::OrphanedImage& orphan = captured->second;
    return fmt::format("{}/{}/{}", part.place->directory.path(), orphan.directory, orphan.file);
  }
  return fmt::format("{}/{}/{}", part.place->directory.path(),
                     store::version_directory(part.found->id), name);
}

// Removes the path at the beginning of a message, because it is shown beside it.
std::string without_path(const std::string& message, const std::string& path) {
  if (!message.starts_with(path)) return message;
  const std::size_t begin = message.find_first_not_of(":/ ", path.size());
  return begin == message.npos ? message : message.substr(begin);
}

class Inspector {
 public:
  Inspector(const CollectedVersion& version, double seen_s) : version_(version), seen_s_(seen_s) {
    result_.version = &version;
  }

  VersionInspection run() {
    std::vector<redundancy::Evidence> evidence;
    for (const Part& part : version_.parts) evidence.push_back(read_part(part));
    if (version_.manifest != nullptr) look_for_missing_files();
    result_.vanished = !result_.damages.empty() && changed_meanwhile();
    const redundancy::Remains remains(std::move(evidence));
    const std::set<std::uint32_t> reached = remains.reached();
    result_.nodes = remains.nodes();
    for (std::uint32_t node = 0; node < result_.nodes.size(); ++node) {
      if (!reached.contains(node)) result_.nodes_unreached.push_back(result_.nodes[node]);
    }
    result_.assessment = redundancy::assess(remains);
    return std::move(result_);
  }

 private:
  redundancy::Evidence read_part(const Part& part) {
    const store::FoundVersion& found = *part.found;
    redundancy::Evidence evidence{
        part.place->node, found.manifest ? &*found.manifest : nullptr, {}};
    for (const store::DamagedFile& manifest : found.damaged_manifests) {
      result_.damages.push_back({manifest.path, without_path(manifest.what, manifest.path)});
    }
    if (found.damaged_manifests.empty() && !found.problem.empty()) {
      const std::string path =
          part.place->directory.path() + "/" + store::version_directory(found.id);
      result_.damages.push_back({path, without_path(found.problem, path)});
    }
    if (version_.manifest == nullptr) return evidence;  // nothing says what the files should be
    const format::Manifest& manifest = *version_.manifest;
    for (const std::uint32_t rank : store::ranks_in(found, version_.manifest)) {
      // The file is not of this version, and no restart would use it.
      if (rank >= manifest.ranks.size()) continue;
      const store::LocatedImage image = store::locate_image(part.place->kind, manifest, rank);
      if (is_sound(part, image.file, image.expected)) {
        evidence.holdings.images.insert(rank);
      }
    }
    for (const auto& [group, member] : found.parities) {
      if (group >= manifest.groups.size() || member >= manifest.groups[group].parities.size())
        continue;
      if (is_sound(part, store::parity_name(group, member),
                   store::expected_parity(manifest, group, member))) {
        evidence.holdings.parities.insert({group, member});
      }
    }
    return evidence;
  }

  bool is_sound(const Part& part, const std::string& name, const store::ExpectedImage& expected) {
    const std::string path = file_path(part, name);
    auto reader = open_image(part, name, expected);
    if (!reader) {
      result_.damages.push_back({path, without_path(reader.error().message, path)});
      return false;
    }
    ++result_.files;
    result_.bytes += expected.record.file_bytes;
    bool sound = true;
    for (std::size_t region = 0; region < reader->index().regions.size(); ++region) {
      sound = region_is_sound(*reader, region, path) && sound;
    }
    return sound;
  }

  bool region_is_sound(store::ImageReader& reader, std::size_t region, const std::string& path) {
    const format::Region& r = reader.index().regions[region];
    ByteVector scratch(format::kBlockBytes);
    std::vector<std::uint32_t> bad;
    std::string unreadable;
    for (std::uint64_t block = 0; block < r.block_count(); ++block) {
      const auto view = reader.read_block(
          region, block, MutableBytes(scratch).first(reader.block_length(region, block)));
      if (view) continue;
      if (view.error().code == Code::corrupt) {
        bad.push_back(static_cast<std::uint32_t>(block));
      } else {
        unreadable = without_path(view.error().message, path);
      }
    }
    if (!bad.empty()) {
      result_.damages.push_back(
          {path, fmt::format("block{} {} of region '{}' {} damaged", bad.size() == 1 ? "" : "s",
                             numbers_text(bad), r.name, bad.size() == 1 ? "is" : "are")});
    }
    if (!unreadable.empty()) result_.damages.push_back({path, unreadable});
    return bad.empty() && unreadable.empty();
  }

  // Finds files that the manifest lists for places which have the version.
  void look_for_missing_files() {
    const format::Manifest& manifest = *version_.manifest;
    std::map<std::string, std::vector<const Part*>> by_node;
    for (const Part& part : version_.parts) {
      if (part.found->manifest || !part.found->damaged_manifests.empty())
        by_node[part.place->node].push_back(&part);
    }
    for (const auto& [name, parts] : by_node) {
      if (name.empty()) {
        for (std::uint32_t rank = 0; rank < manifest.ranks.size(); ++rank) want_image(parts, rank);
        continue;
      }
      const auto at = std::find(manifest.node_names.begin(), manifest.node_names.end(), name);
      if (at != manifest.node_names.end()) {
        want_files_of_node(parts, static_cast<std::uint32_t>(at - manifest.node_names.begin()));
      }
    }
  }

  void want_files_of_node(const std::vector<const Part*>& parts, std::uint32_t node) {
    const format::Manifest& manifest = *version_.manifest;
    for (std::uint32_t rank = 0; rank < manifest.ranks.size(); ++rank) {
      const format::RankRecord& record = manifest.ranks[rank];
      const bool is_copy = manifest.has_level(2) && record.partner < manifest.ranks.size() &&
                           manifest.ranks[record.partner].node == node;
      if (record.node == node || is_copy) want_image(parts, rank);
    }
    for (std::uint32_t g = 0; manifest.has_level(3) && g < manifest.groups.size(); ++g) {
      const format::Group& group = manifest.groups[g];
      for (std::uint32_t member = 0; member < group.parities.size(); ++member) {
        const bool there = group.nodes[member] != node ||
                           std::any_of(parts.begin(), parts.end(), [&](const Part* part) {
                             return part->found->parities.contains({g, member});
                           });
        if (!there) missing(*parts.front(), store::parity_name(g, member));
      }
    }
  }

  void want_image(const std::vector<const Part*>& parts, std::uint32_t rank) {
    const bool there = std::any_of(parts.begin(), parts.end(), [&](const Part* part) {
      return store::ranks_in(*part->found, version_.manifest).contains(rank);
    });
    if (!there)
      missing(*parts.front(),
              store::locate_image(parts.front()->place->kind, *version_.manifest, rank).file);
  }

  void missing(const Part& part, const std::string& name) {
    const std::string path = file_path(part, name);
    // A file that ranks share is already reported.
    const bool told = !result_.damages.empty() && result_.damages.back().path == path;
    if (!told) result_.damages.push_back({path, "is missing"});
  }

  // Returns whether the version was changed while it was read. A running job removes or writes
  // manifests before it changes the files they name, so a file that looked damaged may have been
  // reused meanwhile.
  bool changed_meanwhile() const {
    // A job writes and removes the two copies of a manifest one after the other, and a busy disk
    // may take some time in between. All versions were seen at once, so there is only one such
    // waiting time.
    constexpr double kBetweenCopiesS = 2;
    constexpr std::chrono::milliseconds kLookAgain{50};
    for (;;) {
      if (std::any_of(version_.parts.begin(), version_.parts.end(), has_changed)) return true;
      const bool half_way =
          std::any_of(version_.parts.begin(), version_.parts.end(), lacks_one_manifest);
      if (!half_way) return false;
      if (sys::monotonic_s() - seen_s_ > kBetweenCopiesS) break;
      std::this_thread::sleep_for(kLookAgain);
    }
    return std::any_of(version_.parts.begin(), version_.parts.end(), [](const Part& part) {
      return lacks_one_manifest(part) && store::is_in_use(*part.place);
    });
  }

  static bool lacks_one_manifest(const Part& part) {
    return part.found->manifest && part.found->damaged_manifests.empty() &&
           !part.found->problem.empty();
  }

  static bool has_changed(const Part& part) {
    if (!part.captured.empty()) return store::is_in_use(*part.place);
    const auto now = store::scan_version(part.place->directory, part.found->id, part.place->job);
    if (!now) return now.error().code == Code::not_found;
    return *now != *part.found;
  }

  const CollectedVersion& version_;
  const double seen_s_;
  VersionInspection result_;
};

RankDetails details_of_rank(const CollectedVersion& version, std::uint32_t rank) {
  RankDetails details;
  for (const Part& part : version.parts) {
    if (!store::ranks_in(*part.found, version.manifest).contains(rank)) continue;
    details.found_in.push_back(place_name(*part.place));
    const bool is_compressed =
        part.place->kind == config::TierKind::global && version.manifest->ranks[rank].is_encoded();
    if (details.regions && !is_compressed) continue;
    const store::LocatedImage image =
        store::locate_image(part.place->kind, *version.manifest, rank);
    auto reader = open_image(part, image.file, image.expected);
    if (reader) {
      if (is_compressed) details.compressed = reader->index().regions;
      details.regions = reader->index().regions;
    } else if (!details.regions) {
      details.problem = reader.error().message;
    }
  }
  if (!details.regions) {
    auto rebuilt = rebuild_image(version, rank);
    if (rebuilt) details.regions = rebuilt->index().regions;
    if (!rebuilt && details.found_in.empty()) details.problem = rebuilt.error().message;
  }
  return details;
}

}  // namespace

VersionDetails read_details(const CollectedVersion& version) {
  VersionDetails details;
  details.version = &version;
  for (std::uint32_t rank = 0; rank < version.manifest->ranks.size(); ++rank) {
    details.ranks.push_back(details_of_rank(version, rank));
  }
  return details;
}

VersionInspection inspect(const CollectedVersion& version, double seen_s) {
  return Inspector(version, seen_s).run();
}

}  // namespace diapause::cli
