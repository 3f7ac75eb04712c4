// The end of a job. First a mark in the global tier records the end, then the versions are removed.
// If the process is killed in between, the job is still finished: the next start finds the mark and
// removes the rest (tiers.cpp).
#include <fmt/core.h>

#include <algorithm>

#include "engine/job/identity.hpp"
#include "engine/node/node_engine.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

// Removes the oldest versions first. If only the newest is left and the mark could not be written,
// a start begins from that version.
Status remove_all_but(const std::optional<format::VersionId>& archive, store::Tier& tier) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<store::FoundVersion> found, tier.scan());
  Status result;
  for (auto version = found.rbegin(); version != found.rend(); ++version) {
    const bool stays = version->id == archive && tier.kind() == config::TierKind::global;
    if (stays) continue;
    Status removed = tier.remove_version(version->id);
    if (result) result = std::move(removed);
  }
  tier.drop_spares();
  Status cleared = tier.clear_spares();
  if (result) result = std::move(cleared);
  return result;
}

}  // namespace

// Decides which version stays of the job, according to the settings.
Result<store::FinishedMark> NodeEngine::mark_of_end() const {
  store::FinishedMark mark{incarnation_, std::nullopt};
  if (context_.settings.finish_keep == config::FinishKeep::nothing) return mark;
  const auto newest = std::ranges::find_if(catalogue_.versions(), [](const KnownVersion& known) {
    return known.is_in(config::TierKind::global) && !known.rejected;
  });
  if (newest == catalogue_.versions().end()) {
    return fail(Code::not_found, fmt::format("'{}' is not finished: finish.keep is \"last\", and "
                                             "there is no version of level 4 to keep; "
                                             "take one before, or set finish.keep to \"nothing\"",
                                             context_.job));
  }
  mark.archive = newest->manifest.version;
  return mark;
}

Status NodeEngine::finish() {
  const Context& context = context_;
  if (context.settings.finish_keep == config::FinishKeep::all) return {};
  DIAPAUSE_TRY_ASSIGN(const store::FinishedMark mark, mark_of_end());
  auto global = context.tiers.get(config::TierKind::global);
  if (!global) {
    return fail(global.error().code,
                fmt::format("'{}' is not finished, and all of it is kept: the global directory, "
                            "which has to know of that, cannot be used: {}",
                            context.job, global.error().message));
  }
  Status mine;
  if (context.acts_for(config::TierKind::global))
    mine = store::write_finished((*global)->directory(), mark);
  DIAPAUSE_TRY(agree(context, mine));
  for (const config::TierKind kind : kAllTiers) {
    store::Tier* const tier = context.tiers.find(kind);
    if (tier == nullptr || !context.acts_for(kind)) continue;
    Status removed = remove_all_but(mark.archive, *tier);
    if (removed) removed = tier->directory().remove_file(store::kRanksName);
    if (mine) mine = std::move(removed);
  }
  DIAPAUSE_TRY(agree(context, mine));
  return context.settings.finish_directories == config::FinishDirectories::remove ? leave_nodes()
                                                                                  : Status();
}

namespace {

// Removes the job's directory of a tier if no node has anything in it. Nodes that share a directory
// do this at the same time: whoever comes last finds nothing.
Status remove_if_empty(const Context& context, const std::string& root) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory tier,
                      sys::Directory::open_private(context.kernel, root));
  const auto job = tier.open_child(context.job_key());
  if (!job) return job.error().code == Code::not_found ? Status() : fail(job.error());
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> left, job->list());
  const bool has_nodes = std::ranges::any_of(
      left, [](const sys::DirectoryEntry& entry) { return entry.is_directory; });
  return has_nodes ? Status() : tier.remove_child(context.job_key());
}

}  // namespace

// What a killed process leaves here is harmless, because the mark is there.
Status NodeEngine::leave_nodes() {
  const Context& context = context_;
  const auto on_each = [&](auto&& act) {
    Status mine;
    for (const config::TierKind kind : kNodeTiers) {
      store::Tier* const tier = context.tiers.find(kind);
      if (tier == nullptr || !context.acts_for(kind)) continue;
      Status done = act(*tier);
      if (mine) mine = std::move(done);
    }
    return agree(context, mine);
  };
  const std::string& node = context.topology.node_names[context.topology.node];
  DIAPAUSE_TRY(on_each([&](store::Tier& tier) { return tier.leave(node); }));
  return on_each([&](const store::Tier& tier) {
    return remove_if_empty(context, root_of(context.settings, tier.kind()));
  });
}

// Removes remains of a job that was finished: on nodes that were not part of it then, or because
// its end was interrupted.
void NodeEngine::drop_leftovers(const Inventory& inventory) {
  incarnation_ = std::max(incarnation_, inventory.mark.incarnation + 1);
  for (const StoredVersion& version : inventory.finished) {
    for (const config::TierKind kind : kAllTiers) {
      store::Tier* const tier = context_.tiers.find(kind);
      const bool stays = kind == config::TierKind::global && version.id == inventory.mark.archive;
      if (tier == nullptr || stays || !context_.acts_for(kind)) continue;
      const Status removed = tier->remove_version(version.id);
      if (!removed) context_.log(Severity::warning, removed.error().message);
    }
  }
}

}  // namespace diapause::engine
