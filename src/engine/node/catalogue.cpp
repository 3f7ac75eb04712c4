#include "engine/node/catalogue.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "policy/retention.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

constexpr std::uint32_t kLevel1Only = 1u << 1;

struct Needed {
  bool image;       // whether it has the level-1 images of the node tier
  bool redundancy;  // copies, parities, or the global images
};

// Returns which files of a version serve the levels that it is kept for. A deeper level keeps the
// promises of those below it.
Needed needed(std::uint32_t kept, int deepest) {
  const bool redundancy = deepest >= 2 && (kept >> 2) != 0;
  const bool image = (kept & kLevel1Only) != 0 || (redundancy && deepest < 4);
  return {image, redundancy};
}

}  // namespace

std::uint32_t Catalogue::lossy_in_a_row() const {
  const auto newest = std::ranges::find_if(versions_, [](const KnownVersion& known) {
    return known.is_in(config::TierKind::global) && !known.rejected;
  });
  return newest == versions_.end() ? 0 : newest->manifest.lossy_in_a_row;
}

KnownVersion* Catalogue::find(const format::VersionId& version) {
  const auto it = std::find_if(versions_.begin(), versions_.end(), [&](const KnownVersion& known) {
    return known.manifest.version == version;
  });
  return it == versions_.end() ? nullptr : &*it;
}

void Catalogue::add(const format::Manifest& manifest, config::TierKind kind) {
  KnownVersion* known = find(manifest.version);
  if (known == nullptr) {
    const auto place = std::find_if(
        versions_.begin(), versions_.end(),
        [&](const KnownVersion& other) { return other.manifest.version < manifest.version; });
    known = &*versions_.insert(place, KnownVersion{});
  }
  known->manifest = manifest;
  known->in[static_cast<std::size_t>(kind)] = true;
}

Status Catalogue::prove(const store::Tier& tier, const format::VersionId& version) const {
  for (const OwnFile& file : own_files_) {
    if (file.version == version && file.kind == tier.kind())
      DIAPAUSE_TRY(tier.prove(file.slot, version, file.name));
  }
  return {};
}

std::optional<format::Manifest> Catalogue::manifest_of(const format::VersionId& version) const {
  const auto known = std::ranges::find(
      versions_, version, [](const KnownVersion& one) { return one.manifest.version; });
  return known == versions_.end() ? std::nullopt : std::optional(known->manifest);
}

void Catalogue::reject(const format::VersionId& version) {
  if (KnownVersion* known = find(version)) known->rejected = true;
}

void Catalogue::release_own(const Context& context, const format::VersionId& version,
                            config::TierKind kind, bool only_redundancy) {
  store::Tier* tier = context.tiers.find(kind);
  std::set<std::string> own_images;
  for (const std::uint32_t rank : context.topology.acted_for)
    own_images.insert(store::image_name(rank));
  for (auto file = own_files_.begin(); file != own_files_.end();) {
    const bool affected = file->version == version && file->kind == kind &&
                          !(only_redundancy && own_images.contains(file->name));
    if (!affected) {
      ++file;
      continue;
    }
    const bool reusable = kind != config::TierKind::global && !perhaps_mapped_.contains(version);
    const bool is_out =
        tier != nullptr && reusable && tier->recycle(std::move(file->slot), version, file->name);
    if (!is_out) littered_.insert(version);
    file = own_files_.erase(file);
  }
}

Status Catalogue::retire(const Context& context, const format::VersionId& version,
                         config::TierKind kind) {
  store::Tier* tier = context.tiers.find(kind);
  if (tier == nullptr) return {};
  Status mine;
  if (context.acts_for(kind)) mine = tier->unpublish(version);
  DIAPAUSE_TRY(agree(context, mine));
  release_own(context, version, kind, false);
  const bool can_keep = littered_.erase(version) == 0 && tier->can_keep_directory(version);
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t stays, context.comm->all_min(can_keep ? 1 : 0));
  mine = {};
  if (stays != 0) {
    tier->keep_directory();
  } else if (context.acts_for(kind)) {
    mine = tier->remove_unpublished(version);
  }
  if (!mine) context.log(Severity::warning, mine.error().message);
  if (KnownVersion* known = find(version)) {
    known->in[static_cast<std::size_t>(kind)] = false;
    if (std::none_of(known->in.begin(), known->in.end(), [](bool there) { return there; })) {
      versions_.erase(versions_.begin() + (known - versions_.data()));
    }
  }
  return {};
}

void Catalogue::drop_redundancy_files(const Context& context, const KnownVersion& version,
                                      config::TierKind kind) {
  store::Tier* tier = context.tiers.find(kind);
  release_own(context, version.manifest.version, kind, true);
  if (!context.topology.is_leader() || tier == nullptr) return;
  // These files were written by an earlier process.
  const auto found = tier->scan();
  if (!found) return;
  for (const store::FoundVersion& candidate : *found) {
    if (candidate.id != version.manifest.version) continue;
    for (const std::uint32_t rank : candidate.images) {
      const bool resident = rank < context.rank_count() &&
                            context.topology.node_of_rank[rank] == context.topology.node;
      if (!resident) (void)tier->remove_file(candidate.id, store::image_name(rank));
    }
    for (const auto& [group, member] : candidate.parities) {
      (void)tier->remove_file(candidate.id, store::parity_name(group, member));
    }
  }
}

// Keeps the images of a version and gives up what made it deeper than level 1.
Status Catalogue::degrade(const Context& context, KnownVersion& version) {
  format::Manifest manifest = version.manifest;
  manifest.levels = kLevel1Only;
  manifest.groups.clear();
  for (format::RankRecord& rank : manifest.ranks) {
    rank.partner = format::kNoRank;
    rank.encoded = {};
    rank.greatest_error = 0;
  }
  for (const config::TierKind kind : kNodeTiers) {
    if (!version.is_in(kind)) continue;
    Status mine;
    store::Tier* tier = context.tiers.find(kind);
    if (tier != nullptr && context.topology.is_leader()) {
      mine = prove(*tier, manifest.version);
      if (mine) mine = tier->publish(manifest);
    }
    DIAPAUSE_TRY(agree(context, mine));
    drop_redundancy_files(context, version, kind);
  }
  version.manifest = std::move(manifest);
  if (version.is_in(config::TierKind::global)) {
    return retire(context, version.manifest.version, config::TierKind::global);
  }
  return {};
}

void Catalogue::prune(const Context& context) {
  std::vector<policy::RetentionCandidate> candidates;
  std::vector<bool> counts(versions_.size());
  std::set<std::uint64_t> numbers;  // a reused number replaces the older version of that number
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    counts[i] =
        !versions_[i].rejected && numbers.insert(versions_[i].manifest.version.number).second;
    if (counts[i])
      candidates.push_back(
          {versions_[i].manifest.levels, versions_[i].manifest.greatest_error() == 0});
  }
  const std::vector<std::uint32_t> kept = policy::kept_levels(candidates, context.settings);

  struct Change {
    format::VersionId version;
    Needed needs;
  };
  std::vector<Change> changes;
  std::size_t next = 0;
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    const std::uint32_t mask = counts[i] ? kept[next++] : 0;
    changes.push_back(
        {versions_[i].manifest.version, needed(mask, versions_[i].manifest.deepest_level())});
  }
  has_kept_pinned_ = false;
  for (const Change& change : changes) {
    KnownVersion* version = find(change.version);
    if (version == nullptr || change.version == spared_) continue;
    if (change.version == pinned_) {
      has_kept_pinned_ = has_kept_pinned_ || !change.needs.image;
      continue;
    }
    const int deepest = version->manifest.deepest_level();
    Status done;
    if (!change.needs.image) {
      for (const config::TierKind kind : kNodeTiers) {
        if (done && version != nullptr && version->is_in(kind))
          done = retire(context, change.version, kind);
        version = find(change.version);
      }
      const bool drop_global = version != nullptr && version->is_in(config::TierKind::global) &&
                               !change.needs.redundancy;
      if (done && drop_global) done = retire(context, change.version, config::TierKind::global);
    } else if (deepest > 1 && !change.needs.redundancy) {
      done = degrade(context, *version);
    }
    if (!done) context.log(Severity::warning, "an old version stays: " + done.error().message);
  }
}

Result<bool> Catalogue::make_room(const Context& context, config::TierKind kind) {
  const KnownVersion* given_up = nullptr;
  bool is_newest = true;
  for (const KnownVersion& version : versions_) {
    if (!version.is_in(kind)) continue;
    const bool may_go = !std::exchange(is_newest, false) && version.manifest.version != pinned_;
    const int deepest = version.manifest.deepest_level();
    const bool survives_less = given_up == nullptr || deepest <= given_up->manifest.deepest_level();
    if (may_go && survives_less) given_up = &version;
  }
  if (given_up == nullptr) return false;
  const format::VersionId version = given_up->manifest.version;
  context.log(Severity::information, fmt::format("version {} makes room in the {} tier",
                                                 version.number, store::tier_name(kind)));
  DIAPAUSE_TRY(retire(context, version, kind));
  // Only one rank removes the files, and no rank must look for room before that.
  DIAPAUSE_TRY(context.comm->barrier());
  return true;
}

// Slow writes are no error, but their reason explains a slow checkpoint.
void Catalogue::tell_of_slow_writes(const Context& context, const store::Tier& tier,
                                    const sys::File& file) {
  if (tier.kind() == config::TierKind::memory || !context.acts_for(tier.kind())) return;
  const auto tell = [&](const std::string& what) {
    if (told_.insert(what).second) context.log(Severity::information, what);
  };
  if (!file.is_direct()) {
    tell(
        fmt::format("the {} tier {} refuses O_DIRECT: its files are written through the page cache",
                    store::tier_name(tier.kind()), tier.path()));
  }
  if (!context.kernel.has_queues())
    tell("io_uring is refused here: files are written one piece after the other");
}

Result<std::vector<store::Slot>> Catalogue::acquire(const Context& context, config::TierKind kind,
                                                    const std::vector<std::uint64_t>& sizes,
                                                    store::SlotUse use) {
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context.tiers.get(kind));
  while (true) {
    std::vector<store::Slot> slots;
    Status mine;
    for (const std::uint64_t size : sizes) {
      auto slot = tier->acquire(size, context.slot_owner(), use);
      if (!slot) {
        mine = fail(std::move(slot.error()));
        break;
      }
      slots.push_back(std::move(*slot));
    }
    const Status all = agree(context, mine);
    if (all) return slots;
    for (store::Slot& slot : slots) tier->give_back(std::move(slot));
    if (all.error().code != Code::full) return fail(all.error());
    DIAPAUSE_TRY_ASSIGN(const bool made, make_room(context, kind));
    if (!made) return fail(all.error());
  }
}

void Catalogue::discard(const Context& context, const format::VersionId& version,
                        config::TierKind kind) {
  const Status done = retire(context, version, kind);
  if (!done) context.log(Severity::warning, done.error().message);
}

}  // namespace diapause::engine
