#include "conformance/tier_world.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "store/names.hpp"
#include "support/value_of.hpp"

namespace diapause::conformance {
namespace {

constexpr uid_t kSomebodyElse = 4711;

}  // namespace

World::World(Ground ground) {
  if (ground == Ground::disk_in_memory) {
    disk_ = std::make_unique<test_support::VolatileDisk>();
    return;
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "diapause-tier-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

World::~World() {
  if (!disk_) std::filesystem::remove_all(path_);
}

void World::make_directory(const std::string& path, mode_t mode) {
  const mode_t mask = ::umask(0);
  if (kernel().mkdirat(AT_FDCWD, path.c_str(), mode) != 0) std::abort();
  ::umask(mask);
}

void World::give_to_somebody_else(const std::string& path) {
  const bool given =
      disk_ ? disk_->set_owner(path, kSomebodyElse) : ::chown(path.c_str(), kSomebodyElse, -1) == 0;
  if (!given) std::abort();
}

Result<store::Tier> open_tier(sys::Kernel& kernel, config::TierKind kind, const std::string& root,
                              bool create) {
  return store::Tier::open(kernel, kind, root, "job-00000000",
                           kind == config::TierKind::global ? "" : "node1", create);
}

format::VersionId version_of(std::uint64_t number) {
  format::VersionId id{1, number, {}};
  id.commit.bytes[3] = static_cast<std::uint8_t>(number);
  return id;
}

Content::Content(format::VersionId version, std::size_t bytes, std::byte fill)
    : memory(bytes, fill) {
  format::Region region;
  region.name = "grid";
  region.count = bytes;
  index.regions.push_back(region);
  index_offset = *format::lay_out(index);
  identity.version = version;
  identity.rank_count = 1;
}

Result<format::Manifest> write_image(store::Slot& slot, const Content& content) {
  capture::MemorySource source({content.memory.data()});
  auto captured = slot.mapping().empty()
                      ? capture_to_file(source, content.index, content.index_offset,
                                        content.identity, slot.file())
                      : capture_to_mapping(source, content.index, content.index_offset,
                                           content.identity, slot.mapping());
  if (!captured) return fail(captured.error());
  format::Manifest manifest;
  manifest.job = "job";
  manifest.version = content.identity.version;
  manifest.levels = 1u << 1;
  manifest.node_names = {"node1"};
  manifest.ranks.resize(1);
  manifest.ranks[0].image = {captured->header.file_bytes, captured->header.index_digest};
  manifest.ranks[0].protected_bytes = content.memory.size();
  return manifest;
}

Status settle_image(store::Tier& tier, store::Slot& slot, const format::Manifest& manifest) {
  DIAPAUSE_TRY(tier.begin_version(manifest.version));
  return tier.settle(slot, manifest.version, store::image_name(0));
}

Result<Stored> store_version(store::Tier& tier, const Content& content) {
  Stored stored;
  DIAPAUSE_TRY_ASSIGN(stored.slot, tier.acquire(content.image_bytes(), 0));
  DIAPAUSE_TRY_ASSIGN(stored.manifest, write_image(stored.slot, content));
  DIAPAUSE_TRY(settle_image(tier, stored.slot, stored.manifest));
  DIAPAUSE_TRY(tier.sync_version(stored.manifest.version));
  DIAPAUSE_TRY(tier.publish(stored.manifest));
  return stored;
}

Status check_whole(const store::Tier& tier, const format::VersionId& version) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<store::FoundVersion> found, tier.scan());
  const auto it = std::ranges::find(found, version, &store::FoundVersion::id);
  if (it == found.end() || !it->manifest) return fail(Code::not_found, "the version is not there");
  auto reader =
      tier.open_image(version, store::image_name(0), store::expected_image(*it->manifest, 0));
  if (!reader)
    return fail(Code::corrupt, reader.error().message);  // also where the file is missing
  return reader->verify();
}

std::vector<std::string> names_in(const sys::Directory& directory) {
  std::vector<std::string> names;
  for (const sys::DirectoryEntry& entry : test_support::value_of(directory.list()))
    names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

std::string name_of_kind(const testing::TestParamInfo<config::TierKind>& info) {
  return store::tier_name(info.param);
}

}  // namespace diapause::conformance
