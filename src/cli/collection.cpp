#include "cli/collection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/captures.hpp"
#include "store/identity.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

constexpr config::TierKind kTiers[] = {config::TierKind::memory, config::TierKind::local,
                                       config::TierKind::global};

void add_part(std::map<std::string, VersionsById>& jobs, const store::SurveyedPlace& place,
              const store::FoundVersion& found) {
  CollectedVersion& version = jobs[place.job][found.id];
  version.id = found.id;
  version.parts.push_back({&place, &found, {}});
  if (!found.manifest) return;
  const bool deeper = version.manifest == nullptr ||
                      found.manifest->deepest_level() > version.manifest->deepest_level();
  if (deeper) version.manifest = &*found.manifest;
}

// Separates copies from originals. A copy of a job whose original still exists becomes a job of its
// own when it is started, and gets nothing of what the nodes hold for the original.
void part_copies_from_originals(Collection& collection) {
  std::map<std::string, std::string> copies;
  for (const store::SurveyedPlace& place : collection.places) {
    if (!place.original.empty()) copies[place.job] = place.original;
  }
  for (const auto& [key, original] : copies) {
    collection.notes.push_back(fmt::format(
        "{} is a copy of the job in {}: what the nodes hold belongs to that one", key, original));
  }
  std::erase_if(collection.places, [&](const store::SurveyedPlace& place) {
    return place.kind != config::TierKind::global && copies.contains(place.job);
  });
}

// Returns the marks of the jobs that their programs have finished. A mark that cannot be read
// counts as none, as it does for the next start.
std::map<std::string, store::FinishedMark> read_marks(Collection& collection) {
  std::map<std::string, store::FinishedMark> marks;
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.kind != config::TierKind::global) continue;
    const auto mark = store::read_finished(place.directory);
    if (mark) {
      marks[place.job] = *mark;
    } else {
      collection.notes.push_back(mark.error().message);
    }
  }
  return marks;
}

}  // namespace

Result<config::Settings> read_settings(const std::string& config_file) {
  const config::Environment environment = sys::environment();
  std::string path = config_file;
  for (const auto& [name, value] : environment) {
    if (path.empty() && name == "DIAPAUSE_CONFIG") path = value;
  }
  std::string text;
  if (!path.empty()) {
    DIAPAUSE_TRY_ASSIGN(text, sys::read_text_file(sys::real_kernel(), path));
  }
  return config::parse_settings(text, path, environment, sys::user_id());
}

std::vector<std::string> CollectedVersion::problems() const {
  std::vector<std::string> all;
  for (const Part& part : parts) {
    if (part.found->damaged_manifests.empty() && !part.found->problem.empty())
      all.push_back(part.found->problem);
    for (const store::DamagedFile& copy : part.found->damaged_manifests) all.push_back(copy.what);
  }
  return all;
}

const CollectedVersion* Job::newest() const {
  const auto found = std::find_if(
      versions.begin(), versions.end(),
      [](const CollectedVersion& version) { return !version.unfinished() && !version.is_over; });
  return found == versions.end() ? nullptr : &*found;
}

Result<std::vector<std::string>> tier_roots(const Places& places) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings, read_settings(places.config));
  std::vector<std::string> roots = {places.memory.value_or(settings.memory_path),
                                    places.local.value_or(settings.local_path),
                                    places.global.value_or(settings.global_path)};
  if (roots[0] == config::default_settings(sys::user_id()).memory_path) {
    roots[0] = store::own_root(sys::real_kernel(), roots[0]);
  }
  for (std::string& root : roots) {
    if (root.empty()) continue;
    DIAPAUSE_TRY_ASSIGN(root, sys::absolute_path(root));
  }
  return roots;
}

Result<Collection> collect(const Places& places) {
  Collection collection;
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> roots, tier_roots(places));
  for (const config::TierKind kind : kTiers) {
    const std::string& root = roots[static_cast<std::size_t>(kind)];
    if (root.empty()) continue;
    collection.roots.push_back(fmt::format("{} {}", store::tier_name(kind), root));
    store::Survey survey = store::survey_root(sys::real_kernel(), kind, root);
    std::move(survey.places.begin(), survey.places.end(), std::back_inserter(collection.places));
    std::move(survey.problems.begin(), survey.problems.end(),
              std::back_inserter(collection.problems));
  }
  part_copies_from_originals(collection);
  std::map<std::string, VersionsById> jobs;
  for (const store::SurveyedPlace& place : collection.places) {
    jobs[place.job];  // makes an entry also for a job without versions
    for (const store::FoundVersion& found : place.versions) add_part(jobs, place, found);
  }
  add_captures(collection, jobs);
  const std::map<std::string, store::FinishedMark> finished = read_marks(collection);
  for (auto& [key, versions] : jobs) {
    const auto mark = finished.find(key);
    Job job{key, {}, mark == finished.end() ? store::FinishedMark{} : mark->second};
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
      CollectedVersion& one = job.versions.emplace_back(std::move(version->second));
      one.is_over = job.finished.covers(one.id);
      one.is_archive = one.is_over && job.finished.archive == one.id;
    }
    collection.jobs.push_back(std::move(job));
  }
  collection.seen_s = sys::monotonic_s();
  return collection;
}

Result<std::vector<const Job*>> find_jobs(const Collection& collection, const std::string& name) {
  constexpr std::size_t kDigits = 9;  // "-" and 8 digits of the key
  std::vector<const Job*> found;
  for (const Job& job : collection.jobs) {
    const bool matches =
        name.empty() || job.key == name || job.key.substr(0, job.key.size() - kDigits) == name;
    if (matches) found.push_back(&job);
  }
  if (!found.empty() || name.empty()) return found;
  const std::string none =
      fmt::format("there is no job '{}' in: {}", name, fmt::join(collection.roots, ", "));
  if (collection.problems.empty()) return fail(Code::not_found, none);
  return fail(Code::io, fmt::format("{}, as far as that can be read: {}", none,
                                    fmt::join(collection.problems, "; ")));
}

Result<const Job*> find_job(const Collection& collection, const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<const Job*> jobs, find_jobs(collection, name));
  if (jobs.size() == 1) return jobs.front();
  if (jobs.empty()) return fail(Code::not_found, "there is no job: name one");
  std::vector<std::string> keys;
  for (const Job* job : jobs) {
    if (job->key == name) return job;
    keys.push_back(job->key);
  }
  return fail(Code::argument, fmt::format("'{}' may be any of: {}; take one of these names", name,
                                          fmt::join(keys, ", ")));
}

namespace {

// Returns the files that have the right name and are not shorter than the manifest says.
redundancy::Holdings holdings_by_size(const Part& part, const format::Manifest* manifest) {
  redundancy::Holdings holdings{store::ranks_in(*part.found, manifest), part.found->parities};
  const auto directory = part.place->directory.open_child(store::version_directory(part.found->id));
  if (manifest == nullptr || !part.captured.empty() || !directory) return holdings;
  const auto is_short = [&](const std::string& name, const store::ExpectedImage& expected) {
    const auto file = directory->open_file(name, sys::Access::read);
    const auto size = file ? file->size() : Result<std::uint64_t>(fail(file.error()));
    return !size || *size < expected.offset + expected.record.file_bytes;
  };
  std::erase_if(holdings.images, [&](std::uint32_t rank) {
    if (rank >= manifest->ranks.size()) return true;
    const store::LocatedImage image = store::locate_image(part.place->kind, *manifest, rank);
    return is_short(image.file, image.expected);
  });
  std::erase_if(holdings.parities, [&](const auto& parity) {
    const auto& [group, member] = parity;
    if (group >= manifest->groups.size() || member >= manifest->groups[group].parities.size())
      return true;
    return is_short(store::parity_name(group, member),
                    store::expected_parity(*manifest, group, member));
  });
  return holdings;
}

}  // namespace

redundancy::Remains remains_by_name(const CollectedVersion& version) {
  std::vector<redundancy::Evidence> evidence;
  for (const Part& part : version.parts) {
    const format::Manifest* manifest = part.found->manifest ? &*part.found->manifest : nullptr;
    evidence.push_back({part.place->node, manifest, holdings_by_size(part, version.manifest)});
  }
  return redundancy::Remains(std::move(evidence));
}

const char* state_of(const CollectedVersion& version) {
  if (version.unfinished()) return "unfinished";
  if (version.is_over && !version.is_archive) return "finished";
  if (version.manifest == nullptr) return "damaged";
  if (!remains_by_name(version).survives({})) return "partial";
  if (version.is_archive) return "archive";
  return version.is_captured ? "captured" : "complete";
}

Result<store::ImageReader> open_image(const Part& part, const std::string& name,
                                      const store::ExpectedImage& expected) {
  const auto captured = part.captured.find(name);
  if (captured != part.captured.end())
    return store::open_orphaned_image(part.place->directory, captured->second);
  return store::open_image_in(part.place->directory, part.found->id, name, expected);
}

std::uint64_t data_bytes(const format::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const format::RankRecord& rank : manifest.ranks) bytes += rank.protected_bytes;
  return bytes;
}

std::string compression_text(const format::Manifest& manifest) {
  std::uint64_t bytes = 0, stored = 0;
  bool is_compressed = false;
  for (const format::RankRecord& rank : manifest.ranks) {
    bytes += rank.image.file_bytes;
    stored += rank.in_global().file_bytes;
    is_compressed = is_compressed || rank.is_encoded();
  }
  if (!is_compressed) return {};
  const double error = manifest.greatest_error();
  return fmt::format("1/{:.2f}, {}", static_cast<double>(bytes) / static_cast<double>(stored),
                     error == 0 ? "exact" : fmt::format("within {:.3g}", error));
}

StoredBytes& StoredBytes::operator+=(const StoredBytes& other) {
  all += other.all;
  images += other.images;
  copies += other.copies;
  parity += other.parity;
  return *this;
}

namespace {

// Returns whether an image on a node is of a rank that computes elsewhere. Without a manifest
// that is not known, and it counts as none.
bool is_copy(const CollectedVersion& version, const Part& part, std::uint32_t rank) {
  const format::Manifest* const manifest = version.manifest;
  if (part.place->kind == config::TierKind::global || manifest == nullptr) return false;
  return rank < manifest->ranks.size() &&
         manifest->node_names[manifest->ranks[rank].node] != part.place->node;
}

}  // namespace

StoredBytes stored_bytes(const CollectedVersion& version, const Part& part) {
  StoredBytes bytes;
  for (const auto& [name, orphan] : part.captured)
    bytes += {orphan.header.file_bytes, orphan.header.file_bytes, 0, 0};
  const auto directory = part.place->directory.open_child(store::version_directory(version.id));
  if (!directory || !part.captured.empty()) return bytes;  // it was removed meanwhile
  const auto entries = directory->list();
  if (!entries) return bytes;
  for (const sys::DirectoryEntry& entry : *entries) {
    const auto file = directory->open_file(entry.name, sys::Access::read);
    const std::uint64_t size = file ? file->size().value_or(0) : 0;
    bytes.all += size;
    if (store::parse_parity_name(entry.name)) bytes.parity += size;
    if (store::parse_shared_name(entry.name)) bytes.images += size;
    if (const auto rank = store::parse_image_name(entry.name))
      (is_copy(version, part, *rank) ? bytes.copies : bytes.images) += size;
  }
  return bytes;
}

StoredBytes stored_bytes(const CollectedVersion& version) {
  StoredBytes bytes;
  for (const Part& part : version.parts) bytes += stored_bytes(version, part);
  return bytes;
}

std::string places_text(const CollectedVersion& version) {
  constexpr std::size_t kMostNamed = 4;
  std::string text;
  for (const config::TierKind kind : kTiers) {
    std::vector<std::string> nodes;
    bool any = false;
    for (const Part& part : version.parts) {
      if (part.place->kind != kind) continue;
      any = true;
      if (!part.place->node.empty()) nodes.push_back(part.place->node);
    }
    if (!any) continue;
    if (!text.empty()) text += ", ";
    text += store::tier_name(kind);
    if (nodes.size() > kMostNamed) {
      text += fmt::format(" ({} nodes)", nodes.size());
    } else if (!nodes.empty()) {
      text += fmt::format(" {}", fmt::join(nodes, " "));
    }
  }
  return text;
}

}  // namespace diapause::cli
