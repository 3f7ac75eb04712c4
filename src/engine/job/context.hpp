// What every step of the engine works with.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/comm.hpp"
#include "config/settings.hpp"
#include "engine/job/topology.hpp"
#include "format/identity.hpp"
#include "store/tier.hpp"
#include "sys/kernel.hpp"

namespace diapause::engine {

// The tiers, by config::TierKind. Whether one can be written to is agreed: it is open on all ranks or on none. One that
// some nodes cannot use is open for reading where it can be: those nodes are lost, and the others are not.
struct Tiers {
  std::array<std::optional<store::Tier>, 3> tiers;
  std::array<std::optional<store::Tier>, 3> read_only;
  std::array<std::optional<store::Tier>, 3> before;  // of those that were closed, the last: the next one succeeds it
  std::array<Error, 3> why_not;                      // for those that are not open
  std::array<bool, 3> may_hold{};                    // of these, whether there may be something of the job in them

  store::Tier* find(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    return tier ? &*tier : nullptr;
  }
  store::Tier* find_to_read(config::TierKind kind) {
    if (store::Tier* tier = find(kind)) return tier;
    auto& tier = read_only[static_cast<std::size_t>(kind)];
    return tier ? &*tier : nullptr;
  }
  Result<store::Tier*> get_to_read(config::TierKind kind) {
    if (store::Tier* tier = find_to_read(kind)) return tier;
    return fail(why_not[static_cast<std::size_t>(kind)]);
  }
  // Until it is opened anew. Versions under way may still need files that this process has lent: they stay.
  void close(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    if (!tier) return;
    tier->drop_spares();
    tier->unlock();
    before[static_cast<std::size_t>(kind)].emplace(std::move(*tier));
    tier.reset();
  }
  // The same, but what lies there can still be read, and the lock stays.
  void keep_to_read(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    if (!tier) return;
    tier->drop_spares();
    read_only[static_cast<std::size_t>(kind)].emplace(std::move(*tier));
    tier.reset();
  }
  // The tier, or the reason why it cannot be used.
  Result<store::Tier*> get(config::TierKind kind) {
    if (store::Tier* tier = find(kind)) return tier;
    return fail(why_not[static_cast<std::size_t>(kind)]);
  }
};

inline constexpr config::TierKind kAllTiers[] = {config::TierKind::memory, config::TierKind::local,
                                                 config::TierKind::global};
inline constexpr config::TierKind kNodeTiers[] = {config::TierKind::memory, config::TierKind::local};

// A process of the program, and the processors it may use.
struct Neighbour {
  std::int64_t process = 0;
  std::vector<std::uint32_t> cpus;
};

struct Context {
  sys::Kernel& kernel;
  std::unique_ptr<comm::Comm> comm;
  config::Settings settings;
  Topology topology;
  Tiers tiers;
  LogSink log;
  std::string job;                         // the name given at open
  std::string job_key;                     // its directory name in every tier
  std::vector<Neighbour> neighbours = {};  // this node's ranks that compute; empty where nobody governs the node
  format::JobIdentity identity = {};       // which job this is; its key is job_key

  std::uint32_t rank() const { return topology.rank; }
  std::uint32_t rank_count() const { return static_cast<std::uint32_t>(topology.node_of_rank.size()); }
  // Under which number this process makes files in a tier: who acts for a node does so beside the node's ranks.
  std::uint32_t slot_owner() const { return topology.by_node ? rank_count() + topology.node : rank(); }
  std::uint32_t actor(std::uint32_t of_rank) const { return topology.actor_of_rank[of_rank]; }
  // Whether this rank acts for the tier where one has to: the node's leader, or rank 0 for the global tier.
  bool acts_for(config::TierKind kind) const {
    return kind == config::TierKind::global ? rank() == 0 : topology.is_leader();
  }
};

// All ranks learn whether all succeeded. A failure becomes the same error on all ranks: that of the lowest failing
// rank, which it names. Collective.
Status agree(Context& context, const Status& mine);

// The same, and on success everybody gets what every rank put in. Collective.
Result<std::vector<ByteVector>> agree_and_gather(Context& context, const Status& mine, ByteView payload);

}  // namespace diapause::engine
