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
#include "store/tier.hpp"
#include "sys/kernel.hpp"

namespace diapause::engine {

// Which rank is where. Equal on all ranks but for the first two members.
struct Topology {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;  // mine
  std::vector<std::uint32_t> node_of_rank;
  std::vector<std::string> node_names;
  std::vector<std::uint32_t> leaders;  // lowest rank of each node

  // Who acts behind the capture for whom: every rank for itself, or one process for all ranks of its node. Of a Comm of
  // such processes, actor_of_rank gives the place of each rank's.
  std::vector<std::uint32_t> actor_of_rank;
  std::vector<std::uint32_t> acted_for;  // ranks this process acts for, ascending
  bool by_node = false;

  bool is_leader() const { return leaders[node] == rank; }
  bool acts_for(std::uint32_t of_rank) const { return actor_of_rank[of_rank] == actor_of_rank[rank]; }
};

// The same as seen by the process that acts for all ranks of `rank`'s node, in a Comm of one such process a node.
Topology acting_for_nodes(Topology topology);

// Nodes in the order of their lowest ranks. Collective.
Result<Topology> find_topology(comm::Comm& comm, const config::Settings& settings, const std::string& host_name);

// The same without the last rank of each node, which is set aside to act for the node: the others are numbered anew in
// their order. On a rank set aside, as the first of its node sees it. Code::config names a node of one rank.
struct Parted {
  Topology computing;
  bool is_set_aside = false;
};
Result<Parted> set_last_ranks_aside(const Topology& whole);

// The tiers, by config::TierKind. Whether one can be used is agreed: it is open on all ranks or on none.
struct Tiers {
  std::array<std::optional<store::Tier>, 3> tiers;
  std::array<Error, 3> why_not;    // for those that are not open
  std::array<bool, 3> may_hold{};  // of these, whether there may be something of the job in them

  store::Tier* find(config::TierKind kind) {
    auto& tier = tiers[static_cast<std::size_t>(kind)];
    return tier ? &*tier : nullptr;
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
