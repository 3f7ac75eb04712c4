#include "engine/node/adoption.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "engine/job/gather.hpp"
#include "engine/node/publish.hpp"
#include "store/names.hpp"
#include "store/orphaned_images.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr config::TierKind kMemory = config::TierKind::memory;

class Adoption {
 public:
  explicit Adoption(const Context& context)
      : context_(context), place_(context.tiers.find(kMemory)->directory()) {}

  Result<bool> run(const std::optional<format::VersionId>& newest) {
    DIAPAUSE_TRY_ASSIGN(const std::vector<format::VersionId> whole, find_whole(look(newest)));
    for (const format::VersionId& version : whole) {
      Status adopted = adopt(version);
      if (adopted) return true;
      const Code code = adopted.error().code;
      if (code == Code::comm || is_of_the_moment(code)) return fail(std::move(adopted.error()));
      if (context_.rank() == 0) {
        context_.log(Severity::information,
                     fmt::format("version {}, captured when the last run ended, is not used: {}",
                                 version.number, adopted.error().message));
      }
    }
    return false;
  }

 private:
  struct Place {
    std::string directory, file;
  };

  // Returns one text for each image of this node's ranks that is newer than every version. Where
  // ranks act for themselves, one of them looks for all.
  Result<std::vector<std::string>> look(const std::optional<format::VersionId>& newest) const {
    std::vector<std::string> found;
    if (!context_.acts_for(kMemory)) return found;
    const auto orphans = store::find_orphaned_images(place_);
    if (!orphans && is_of_the_moment(orphans.error().code)) return fail(orphans.error());
    if (!orphans) return found;
    for (const store::OrphanedImage& orphan : *orphans) {
      const format::ImageHeader& header = orphan.header;
      const bool is_new = !newest || header.version > *newest;
      if (!is_new || header.rank_count != context_.rank_count() ||
          header.owner >= header.rank_count)
        continue;
      if (context_.topology.node_of_rank[header.owner] != context_.topology.node) continue;
      found.push_back(fmt::format("{}/{}/{}/{}", store::version_directory(header.version),
                                  header.owner, orphan.directory, orphan.file));
    }
    return found;
  }

  // Returns false if the text is damaged.
  bool take_line(std::string_view line,
                 std::map<format::VersionId, std::set<std::uint32_t>>& ranks) {
    std::array<std::string_view, 4> parts;
    for (std::string_view& part : parts) {
      part = line.substr(0, line.find('/'));
      line.remove_prefix(std::min(part.size() + 1, line.size()));
    }
    const auto version = store::parse_version_directory(parts[0]);
    std::uint32_t rank = 0;
    const auto read = std::from_chars(parts[1].begin(), parts[1].end(), rank);
    if (!version || read.ec != std::errc() || rank >= context_.rank_count() || parts[3].empty())
      return false;
    ranks[*version].insert(rank);
    if (context_.topology.acts_for(rank)) {
      found_[*version].try_emplace(rank, Place{std::string(parts[2]), std::string(parts[3])});
    }
    return true;
  }

  // Returns the versions of which all images were found, newest first.
  Result<std::vector<format::VersionId>> find_whole(const Result<std::vector<std::string>>& mine) {
    const std::vector<std::string> seen = mine ? *mine : std::vector<std::string>();
    DIAPAUSE_TRY_ASSIGN(const Gathered<std::string> all,
                        gather_values<std::string>(context_, mine ? Status() : fail(mine.error()),
                                                   seen, "a list of captures"));
    std::map<format::VersionId, std::set<std::uint32_t>> ranks;
    for (const std::vector<std::string>& of_process : all) {
      for (const std::string& line : of_process) {
        if (!take_line(line, ranks))
          return fail(Code::comm, "a list of captures did not arrive whole");
      }
    }
    std::vector<format::VersionId> whole;
    for (const auto& [version, of] : ranks) {
      if (of.size() == context_.rank_count()) whole.insert(whole.begin(), version);
    }
    return whole;
  }

  Status verify(const format::VersionId& version, std::vector<ImageFacts>& facts,
                std::vector<store::OrphanedImage>& orphans) {
    for (const auto& [rank, at] : found_[version]) {
      DIAPAUSE_TRY_ASSIGN(store::OrphanedImage orphan,
                          store::find_orphaned_image(place_, at.directory, at.file));
      if (orphan.header.version != version || orphan.header.owner != rank) {
        return fail(Code::corrupt,
                    fmt::format("{}/{} is another image by now", at.directory, at.file));
      }
      DIAPAUSE_TRY_ASSIGN(store::ImageReader image, store::open_orphaned_image(place_, orphan));
      DIAPAUSE_TRY(image.verify_through_cache([] { return true; }));
      facts.push_back(facts_of(image.header(), image.index()));
      orphans.push_back(std::move(orphan));
    }
    return {};
  }

  Status adopt(const format::VersionId& version) {
    format::Manifest manifest = make_manifest(context_, version, sys::unix_time_ns());
    manifest.levels = 1u << 1;
    std::vector<ImageFacts> facts;
    std::vector<store::OrphanedImage> orphans;
    Status mine = verify(version, facts, orphans);
    DIAPAUSE_TRY(share_images(context_, manifest, mine, facts));
    for (const store::OrphanedImage& orphan : orphans) {
      if (mine) mine = store::settle_orphaned_image(place_, orphan);
    }
    DIAPAUSE_TRY(agree(context_, mine));
    if (context_.acts_for(kMemory)) {
      store::Tier& tier = *context_.tiers.find(kMemory);
      mine = tier.sync_version(version);
      if (mine) mine = tier.publish(manifest);
    }
    return agree(context_, mine);
  }

  const Context& context_;
  const sys::Directory& place_;
  // The places of images, by the rank that this process acts for.
  std::map<format::VersionId, std::map<std::uint32_t, Place>> found_;
};

}  // namespace

Result<bool> adopt_captures(const Context& context,
                            const std::optional<format::VersionId>& newest) {
  if (context.tiers.find(kMemory) == nullptr) return false;
  return Adoption(context).run(newest);
}

}  // namespace diapause::engine
