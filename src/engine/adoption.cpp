#include "engine/adoption.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/work.hpp"
#include "store/names.hpp"
#include "store/strays.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr config::TierKind kMemory = config::TierKind::memory;

class Adoption {
 public:
  explicit Adoption(Context& context) : context_(context), place_(context.tiers.find(kMemory)->directory()) {}

  Result<bool> run(const std::optional<format::VersionId>& newest) {
    look(newest);
    DIAPAUSE_TRY_ASSIGN(const std::vector<format::VersionId> whole, find_whole());
    for (const format::VersionId& version : whole) {
      Status adopted = adopt(version);
      if (adopted) return true;
      if (adopted.error().code == Code::comm) return fail(std::move(adopted.error()));
      if (context_.rank() == 0) {
        context_.log(Severity::information, fmt::format("version {}, captured when the last run ended, is not used: {}",
                                                        version.number, adopted.error().message));
      }
    }
    return false;
  }

 private:
  // Images of the ranks acted for that are newer than what there is.
  void look(const std::optional<format::VersionId>& newest) {
    const auto strays = store::find_strays(place_);
    if (!strays) return;
    for (const store::StrayImage& stray : *strays) {
      const format::ImageHeader& header = stray.header;
      const bool is_new = !newest || header.version > *newest;
      if (!is_new || header.rank_count != context_.rank_count() || header.owner >= header.rank_count) continue;
      const auto& mine = context_.topology.acted_for;
      if (!std::binary_search(mine.begin(), mine.end(), header.owner)) continue;
      found_[header.version].emplace(header.owner, stray);
    }
  }

  // The versions of which all images were seen, newest first.
  Result<std::vector<format::VersionId>> find_whole() {
    std::string mine;
    for (const auto& [version, images] : found_) {
      for (const auto& [rank, image] : images) mine += fmt::format("{}/{}\n", store::version_directory(version), rank);
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context_, {}, as_byte_view(mine)));
    std::map<format::VersionId, std::set<std::string>> ranks;
    for (const ByteVector& part : all) {
      std::string_view lines(reinterpret_cast<const char*>(part.data()), part.size());
      while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        const std::size_t slash = line.find('/');
        const auto version = store::parse_version_directory(line.substr(0, slash));
        if (!version || slash == line.npos) return fail(Code::comm, "a list of captures did not arrive whole");
        ranks[*version].emplace(line.substr(slash + 1));
      }
    }
    std::vector<format::VersionId> whole;
    for (const auto& [version, of] : ranks) {
      if (of.size() == context_.rank_count()) whole.insert(whole.begin(), version);
    }
    return whole;
  }

  Status verify(const format::VersionId& version, std::vector<ImageFacts>& facts) {
    for (const auto& [rank, stray] : found_[version]) {
      DIAPAUSE_TRY_ASSIGN(store::ImageReader image, store::open_stray(place_, stray));
      DIAPAUSE_TRY(image.verify_through_cache([] { return true; }));
      facts.push_back(facts_of(image.header(), image.index()));
    }
    return {};
  }

  Status adopt(const format::VersionId& version) {
    format::Manifest manifest = make_manifest(context_, version, sys::unix_time_ns());
    manifest.levels = 1u << 1;
    std::vector<ImageFacts> facts;
    Status mine = verify(version, facts);
    DIAPAUSE_TRY(share_images(context_, manifest, mine, facts));
    for (const auto& [rank, stray] : found_[version]) {
      if (mine) mine = store::settle_stray(place_, stray);
    }
    DIAPAUSE_TRY(agree(context_, mine));
    if (context_.acts_for(kMemory)) {
      const store::Tier& tier = *context_.tiers.find(kMemory);
      mine = tier.sync_version(version);
      if (mine) mine = tier.publish(manifest);
    }
    return agree(context_, mine);
  }

  Context& context_;
  const sys::Directory& place_;
  std::map<format::VersionId, std::map<std::uint32_t, store::StrayImage>> found_;  // by rank
};

}  // namespace

Result<bool> adopt_captures(Context& context, const std::optional<format::VersionId>& newest) {
  if (context.tiers.find(kMemory) == nullptr) return false;
  return Adoption(context).run(newest);
}

}  // namespace diapause::engine
