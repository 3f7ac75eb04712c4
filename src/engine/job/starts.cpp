#include "engine/job/starts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "store/identity.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr config::TierKind kCountingTier = config::TierKind::global;

std::string start_text(const format::Starts& starts, std::uint32_t incarnation) {
  const format::Start* start = starts.find(incarnation);
  if (start == nullptr || start->nodes.empty()) return fmt::format("start {}", incarnation);
  return fmt::format("start {} (on {})", incarnation, start->nodes);
}

}  // namespace

Result<std::uint32_t> StartBook::begin(const Context& context, std::uint32_t at_least) {
  std::uint64_t wanted = at_least;
  store::Tier* const tier = context.tiers.find(kCountingTier);
  if (tier != nullptr && context.acts_for(kCountingTier)) {
    auto read = store::read_starts(tier->directory());
    if (read) starts_ = std::move(*read);
    if (!read && read.error().code != Code::not_found)
      context.log(Severity::warning, read.error().message);
    wanted = std::max<std::uint64_t>(wanted, starts_.last_incarnation() + std::uint64_t{1});
  }
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t agreed, context.comm->all_max(wanted));
  incarnation_ = static_cast<std::uint32_t>(agreed);
  if (tier != nullptr && context.acts_for(kCountingTier)) {
    format::Start start;
    start.incarnation = incarnation_;
    start.begun_unix_ns = sys::unix_time_ns();
    start.nodes = fmt::format("{}", fmt::join(context.topology.node_names, " "));
    starts_.list.push_back(std::move(start));
    write(context);
  }
  return incarnation_;
}

format::Start* StartBook::mine(const Context& context) {
  return context.acts_for(kCountingTier) ? starts_.find(incarnation_) : nullptr;
}

void StartBook::note_restart(const Context& context, const format::VersionId& from) {
  format::Start* const start = mine(context);
  if (start == nullptr || start->from == from || from.incarnation >= incarnation_) return;
  start->from = from;
  write(context);
}

void StartBook::note_version(const Context& context) {
  format::Start* const start = mine(context);
  if (start == nullptr || start->has_versions) return;
  start->has_versions = true;
  write(context);
}

void StartBook::write(const Context& context) const {
  store::Tier* const tier = context.tiers.find(kCountingTier);
  if (tier == nullptr) return;
  const Status written = store::write_starts(tier->directory(), starts_);
  if (!written)
    context.log(Severity::warning,
                "this start could not be written down: " + written.error().message);
}

void tell_of_other_histories(const Context& context, const std::vector<StoredVersion>& versions,
                             const format::VersionId& chosen) {
  store::Tier* const tier = context.tiers.find(kCountingTier);
  if (tier == nullptr || context.rank() != 0) return;
  const auto starts = store::read_starts(tier->directory());
  // A start that is not found is older than the record of starts.
  if (!starts || starts->find(chosen.incarnation) == nullptr) return;
  const std::uint32_t root = starts->root_of(chosen.incarnation);
  const std::string taken =
      fmt::format("version {} of {}", chosen.number, start_text(*starts, chosen.incarnation));
  std::map<std::uint32_t, format::VersionId> newest_of_others;  // by the root of their history
  std::set<std::uint32_t> reached;
  for (const StoredVersion& version : versions) {
    if (!version.manifest) continue;
    reached.insert(version.id.incarnation);
    if (starts->find(version.id.incarnation) == nullptr ||
        starts->root_of(version.id.incarnation) == root)
      continue;
    auto [newest, is_first] =
        newest_of_others.try_emplace(starts->root_of(version.id.incarnation), version.id);
    if (!is_first) newest->second = std::max(newest->second, version.id);
  }
  for (const auto& [other, id] : newest_of_others) {
    context.log(
        Severity::warning,
        fmt::format(
            "'{}' has two histories: version {} of {} is of another one than {}, which is taken",
            context.job, id.number, start_text(*starts, id.incarnation), taken));
  }
  for (const format::Start& start : starts->list) {
    const bool is_out_of_reach = start.has_versions && !reached.contains(start.incarnation);
    if (!is_out_of_reach || start.incarnation <= chosen.incarnation) continue;
    context.log(
        Severity::warning,
        fmt::format("{} of '{}' took versions that cannot be reached from here: {} is taken",
                    start_text(*starts, start.incarnation), context.job, taken));
  }
}

}  // namespace diapause::engine
