// The tiers and their content: opened and locked at the start, and reopened when their use failed.
// The members of NodeEngine that do this are here as well.
#include "engine/node/tiers.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "engine/job/identity.hpp"
#include "engine/job/inventory.hpp"
#include "engine/node/adoption.hpp"
#include "engine/node/node_engine.hpp"
#include "redundancy/recovery.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

// Returns whether the tier may hold something of the job. Collective.
bool may_hold(const Context& context, const std::string& root, const std::string& node) {
  if (root.empty()) return false;
  const std::string path = root + "/" + context.job_key() + (node.empty() ? "" : "/" + node);
  const auto any = context.comm->all_max(sys::Directory::may_exist(context.kernel, path) ? 1 : 0);
  return !any || *any != 0;
}

}  // namespace

// Opens a tier. First the process that acts for the tier makes what is missing, then the others
// open it.
Status open_tier(Context& context, config::TierKind kind) {
  const std::string root = root_of(context.settings, kind);
  context.tiers.close(kind);
  const std::string node =
      kind == config::TierKind::global ? "" : context.topology.node_names[context.topology.node];
  const auto open = [&](bool create) -> Status {
    if (!node.empty() && !sys::is_plain_name(node)) {
      return fail(Code::config, fmt::format("'{}' cannot name a node: set node.name", node));
    }
    DIAPAUSE_TRY_ASSIGN(store::Tier tier, store::Tier::open(context.kernel, kind, root,
                                                            context.job_key(), node, create));
    context.tiers.open(kind, std::move(tier));
    return {};
  };
  Status mine;
  if (root.empty())
    mine = fail(Code::config, fmt::format("there is no {} tier: set {}.path",
                                          store::tier_name(kind), store::tier_name(kind)));
  if (mine && context.acts_for(kind)) mine = open(true);
  Status all = agree(context, mine);
  if (all) {
    if (!context.acts_for(kind)) mine = open(false);
    all = agree(context, mine);
  }
  if (!all) {
    const bool is_open = context.tiers.find(kind) != nullptr;
    // Files that lie here can still be read.
    if (!is_open && mine && !root.empty()) (void)open(false);
    context.tiers.keep_to_read(kind, all.error(), may_hold(context, root, node));
    return all;
  }
  context.tiers.succeed(kind);
  return {};
}

namespace {

std::string holder_text(const Context& context) {
  return fmt::format("process {} on {}\n", sys::process_id(),
                     context.topology.node_names[context.topology.node]);
}

// Files in spare/ are remains of an earlier process. If this process acts for a node, they may also
// belong to ranks that run now.
enum class Spares { clear, leave };

// Rank 0 logs a wait that a user would notice.
Status wait_for_lock(const Context& context, store::Tier& tier, double wait_s) {
  constexpr double kUnnoticed_s = 1;
  Status locked = tier.lock(holder_text(context), std::min(wait_s, kUnnoticed_s));
  if (locked || locked.error().code != Code::busy || wait_s <= kUnnoticed_s) return locked;
  if (context.rank() == 0) {
    context.log(Severity::warning, fmt::format("{}; waiting up to {:g} s for its release",
                                               locked.error().message, wait_s));
  }
  return tier.lock(holder_text(context), wait_s - kUnnoticed_s);
}

Status lock_tier(const Context& context, config::TierKind kind, double wait_s, Spares spares) {
  store::Tier* tier = context.tiers.find_to_read(kind);
  Status mine;
  if (tier != nullptr && context.acts_for(kind)) {
    mine = wait_for_lock(context, *tier, wait_s);
    if (mine && spares == Spares::clear) mine = tier->clear_spares();
  }
  if (!mine && mine.error().code == Code::busy) {
    mine.error().message +=
        "; if that is an earlier run, wait for its end; another program needs another name or "
        "directory";
  }
  return agree(context, mine);
}

}  // namespace

// Opens the tiers. A tier that cannot be opened costs only the levels that need it; without any
// tier nothing can be done.
Status NodeEngine::open_tiers() {
  Context& context = context_;
  take_over_renamed_node(context);
  std::string problems;
  Code code = Code::io;
  bool any = false;
  for (const config::TierKind kind : kAllTiers) {
    Status opened = open_tier(context, kind);
    if (opened) any = true;
    if (opened || root_of(context.settings, kind).empty()) continue;
    if (opened.error().code == Code::comm) return opened;
    problems += opened.error().message + "\n";
    if (is_of_the_moment(opened.error().code)) code = opened.error().code;
    if (context.rank() == 0) {
      context.log(Severity::warning, fmt::format("the {} tier cannot be used: {}",
                                                 store::tier_name(kind), opened.error().message));
    }
  }
  if (!any) return fail(code, "no tier can be used:\n" + problems);
  leave_identity(context);
  return {};
}

// Continues without the tier, except for what can be read there, and logs that.
void NodeEngine::do_without(config::TierKind kind, const Error& why) {
  context_.tiers.keep_to_read(kind, why, true);
  if (context_.rank() == 0) context_.log(Severity::warning, why.message);
}

Status NodeEngine::lock_tiers() {
  for (const config::TierKind kind : kAllTiers) {
    Status locked = lock_tier(context_, kind, context_.settings.lock_wait_s, Spares::leave);
    if (locked) continue;
    if (locked.error().code == Code::busy || locked.error().code == Code::comm) return locked;
    do_without(kind, locked.error());
  }
  return {};
}

Status NodeEngine::clear_spares() {
  for (const config::TierKind kind : kAllTiers) {
    const store::Tier* const tier = context_.tiers.find(kind);
    const bool is_mine = tier != nullptr && context_.acts_for(kind);
    Status cleared = agree(context_, is_mine ? tier->clear_spares() : Status{});
    if (cleared) continue;
    if (cleared.error().code == Code::comm) return cleared;
    do_without(kind, cleared.error());
  }
  return {};
}

Status NodeEngine::suspect_if_lost(config::TierKind kind) {
  const store::Tier* const tier = context_.tiers.find(kind);
  const bool is_lost =
      tier != nullptr && (tier->directory().has_no_name() || tier->directory().was_moved());
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t is_gone, context_.comm->all_max(is_lost ? 1 : 0));
  if (is_gone != 0) suspect_[static_cast<std::size_t>(kind)] = true;
  return {};
}

void NodeEngine::revive_tiers() {
  for (const config::TierKind kind : kAllTiers) {
    bool& suspect = suspect_[static_cast<std::size_t>(kind)];
    if (!suspect || root_of(context_.settings, kind).empty()) continue;
    if (!open_tier(context_, kind)) continue;  // the tier is not back yet
    const Status locked =
        lock_tier(context_, kind, 0, context_.topology.by_node ? Spares::leave : Spares::clear);
    suspect = !locked;
    if (locked) continue;
    context_.tiers.close(kind, locked.error());
  }
}

Result<std::unique_ptr<NodeEngine>> NodeEngine::open(Context& context, LedgerWriter& ledger) {
  std::unique_ptr<NodeEngine> engine(new NodeEngine(context, ledger));
  DIAPAUSE_TRY(engine->open_account());
  DIAPAUSE_TRY(engine->open_tiers());
  DIAPAUSE_TRY(engine->lock_tiers());
  DIAPAUSE_TRY(engine->read_catalogue());
  DIAPAUSE_TRY(engine->clear_spares());
  return engine;
}

namespace {

// Restores the second copy of a manifest if a process was killed between writing the two. The tiers
// are searched only if a copy is missing.
void mend_manifests(const Context& context, const std::vector<StoredVersion>& stored) {
  const auto may_lack_one = [](const StoredVersion& one) {
    return one.manifest && !one.problems.empty();
  };
  if (std::ranges::none_of(stored, may_lack_one)) return;
  for (const config::TierKind kind : kAllTiers) {
    store::Tier* tier = context.tiers.find(kind);
    const auto found = tier != nullptr && context.acts_for(kind)
                           ? tier->scan()
                           : std::vector<store::FoundVersion>();
    if (!found) continue;  // the inventory has reported the failure
    for (const store::FoundVersion& version : *found) {
      if (!version.manifest || version.problem.empty()) continue;
      const Status mended = tier->publish(*version.manifest);
      if (!mended) context.log(Severity::warning, mended.error().message);
    }
  }
}

constexpr auto kInGlobal = static_cast<std::size_t>(config::TierKind::global);

// Returns whether the version was being written to the global tier when its process was killed.
bool is_unfinished_in_global(const StoredVersion& version) {
  return version.is_without_manifest_in[kInGlobal] && version.published_on[kInGlobal].empty();
}

// Removes an unfinished version from the global tier, unless a restart may need what was written;
// until then it is kept like the version itself. Returns whether it was removed.
bool remove_unfinished(const Context& context, const StoredVersion& version) {
  const auto plan = redundancy::plan_recovery(*version.manifest, version.nodes, {},
                                              context.topology.node_of_rank);
  if (!plan.missing().empty()) return false;
  store::Tier* const tier = context.tiers.find(config::TierKind::global);
  if (tier == nullptr) return false;
  const Status removed = context.rank() == 0 ? tier->remove_version(version.id) : Status();
  if (!removed) context.log(Severity::warning, removed.error().message);
  return true;
}

}  // namespace

// Takes the inventory, makes a version of the last capture, and removes what never became a
// version.
Status NodeEngine::read_catalogue() {
  Context& context = context_;
  DIAPAUSE_TRY_ASSIGN(Inventory inventory, take_inventory(context));
  drop_leftovers(inventory);
  const std::vector<StoredVersion>& stored = inventory.versions;
  mend_manifests(context, stored);
  const auto newest = std::ranges::find_if(
      stored, [](const StoredVersion& one) { return one.manifest || !one.problems.empty(); });
  std::optional<format::VersionId> oldest_wanted;  // a capture must be newer than this
  if (inventory.mark.incarnation != 0) oldest_wanted = {inventory.mark.incarnation + 1, 0, {}};
  if (newest != stored.end()) oldest_wanted = newest->id;
  DIAPAUSE_TRY_ASSIGN(const bool adopted, adopt_captures(context, oldest_wanted));
  if (adopted) {
    DIAPAUSE_TRY_ASSIGN(inventory, take_inventory(context));
  }
  std::vector<KnownVersion> known;
  for (const StoredVersion& version : stored) {
    incarnation_ = std::max(incarnation_, version.id.incarnation + 1);
    if (!version.manifest) {
      // It once was a version, which a restart has to report.
      if (!version.problems.empty()) continue;
      for (const config::TierKind kind : kAllTiers) {
        store::Tier* tier = context.tiers.find(kind);
        if (tier == nullptr || !context.acts_for(kind)) continue;
        if (Status removed = tier->remove_version(version.id); !removed) {
          context.log(Severity::warning, removed.error().message);
        }
      }
      continue;
    }
    const auto ranks = static_cast<std::uint32_t>(version.manifest->ranks.size());
    if (ranks != context.rank_count()) {
      other_rank_count_ = ranks;
      continue;
    }
    KnownVersion one{*version.manifest, {}, false};
    for (const config::TierKind kind : kAllTiers) {
      one.in[static_cast<std::size_t>(kind)] =
          !version.published_on[static_cast<std::size_t>(kind)].empty();
    }
    if (is_unfinished_in_global(version)) one.in[kInGlobal] = !remove_unfinished(context, version);
    known.push_back(std::move(one));
  }
  catalogue_.replace_all(std::move(known));
  DIAPAUSE_TRY_ASSIGN(incarnation_, book_.begin(context, incarnation_));
  return {};
}

}  // namespace diapause::engine
