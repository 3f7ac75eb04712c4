// The data that every step of the engine works with.
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

// The tiers, by config::TierKind. All ranks agree on whether a tier can be written to: it is open
// on all ranks or on none. A tier that some nodes cannot use is opened for reading where possible,
// so that only those nodes are lost.
struct Tiers {
  std::array<std::optional<store::Tier>, 3> tiers;
  std::array<std::optional<store::Tier>, 3> read_only;
  // The last tier of each kind that was closed; its successor takes over from it.
  std::array<std::optional<store::Tier>, 3> before;
  std::array<Error, 3> why_not;    // for tiers that are not open
  std::array<bool, 3> may_hold{};  // of these, whether they may hold something of the job

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
  // Closes a tier until it is opened anew. Versions in progress may still need files that this
  // process has lent, so these stay.
  void close(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    if (!tier) return;
    tier->drop_spares();
    tier->unlock();
    before[static_cast<std::size_t>(kind)].emplace(std::move(*tier));
    tier.reset();
  }
  // Closes a tier for writing. What lies there can still be read, and the lock stays.
  void keep_to_read(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    if (!tier) return;
    tier->drop_spares();
    read_only[static_cast<std::size_t>(kind)].emplace(std::move(*tier));
    tier.reset();
  }
  // Returns the tier, or the reason why it cannot be used.
  Result<store::Tier*> get(config::TierKind kind) {
    if (store::Tier* tier = find(kind)) return tier;
    return fail(why_not[static_cast<std::size_t>(kind)]);
  }
};

inline constexpr config::TierKind kAllTiers[] = {config::TierKind::memory, config::TierKind::local,
                                                 config::TierKind::global};
inline constexpr config::TierKind kNodeTiers[] = {config::TierKind::memory, config::TierKind::local};

// A process of the program, and the processors that it may use.
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
  std::string job;      // the name given at open
  std::string job_key;  // its directory name in every tier
  // Ranks of this node that compute; empty if nobody governs the node.
  std::vector<Neighbour> neighbours = {};
  format::JobIdentity identity = {};  // identifies the job; its key equals job_key

  std::uint32_t rank() const { return topology.rank; }
  std::uint32_t rank_count() const { return static_cast<std::uint32_t>(topology.node_of_rank.size()); }
  // Returns the number under which this process makes files in a tier. A process that acts for a
  // node does so beside the ranks of the node.
  std::uint32_t slot_owner() const { return topology.by_node ? rank_count() + topology.node : rank(); }
  std::uint32_t actor(std::uint32_t of_rank) const { return topology.actor_of_rank[of_rank]; }
  // Returns whether this rank acts for a tier for which one rank has to: the node's leader, or rank
  // 0 for the global tier.
  bool acts_for(config::TierKind kind) const {
    return kind == config::TierKind::global ? rank() == 0 : topology.is_leader();
  }
};

// Agrees on success: returns success on all ranks if `mine` is a success on all. Otherwise returns
// on all ranks the error of the lowest failing rank, which it names. Collective.
Status agree(Context& context, const Status& mine);

// Agrees as agree() does, and on success returns what every rank passed. Collective.
Result<std::vector<ByteVector>> agree_and_gather(Context& context, const Status& mine, ByteView payload);

}  // namespace diapause::engine
