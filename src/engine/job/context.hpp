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
#include "engine/job/neighbours.hpp"
#include "engine/job/topology.hpp"
#include "format/identity.hpp"
#include "store/tier.hpp"
#include "sys/kernel.hpp"

namespace diapause::engine {

// The tiers, by config::TierKind. All ranks agree on whether a tier can be written to: it is open
// on all ranks or on none. A tier that some nodes cannot use is opened for reading where possible,
// so that only those nodes are lost.
//
// A step may use the tiers that it finds here, and cannot open or close one: that needs an object
// that is not const.
class Tiers {
 public:
  // Returns the tier, or a null pointer if it cannot be written to.
  store::Tier* find(config::TierKind kind) const { return at(kind).open.get(); }
  store::Tier* find_to_read(config::TierKind kind) const {
    return find(kind) != nullptr ? find(kind) : at(kind).read_only.get();
  }
  // Return the tier, or the reason why it cannot be used.
  Result<store::Tier*> get(config::TierKind kind) const { return or_reason(find(kind), kind); }
  Result<store::Tier*> get_to_read(config::TierKind kind) const {
    return or_reason(find_to_read(kind), kind);
  }

  const Error& why_not(config::TierKind kind) const {
    return at(kind).why_not;
  }  // the tier is not open
  // Returns whether a tier that is not open may hold something of the job.
  bool may_hold(config::TierKind kind) const { return at(kind).may_hold; }

  void open(config::TierKind kind, store::Tier tier) {
    at(kind).open = std::make_unique<store::Tier>(std::move(tier));
  }
  // Makes the tier, which was just opened, the successor of the last one of its kind that was
  // closed.
  void succeed(config::TierKind kind) {
    if (!at(kind).before) return;
    find(kind)->succeed(std::move(*at(kind).before));
    at(kind).before.reset();
  }
  // Closes a tier, for reading too, until it is opened anew. Versions in progress may still need
  // files that this process has lent, so these stay.
  void close(config::TierKind kind) {
    Place& place = at(kind);
    place.read_only.reset();
    if (place.open == nullptr) return;
    place.open->drop_spares();
    place.open->unlock();
    place.before = std::move(place.open);
  }
  // Closes a tier for `why`, so that it counts as one that may hold versions which nobody can read.
  void close(config::TierKind kind, Error why) {
    close(kind);
    give_reason(kind, std::move(why), true);
  }
  // Closes a tier for writing. Files that lie there can still be read, and the lock stays.
  // `may_hold` says whether the tier may hold something of the job.
  void keep_to_read(config::TierKind kind, Error why, bool may_hold) {
    Place& place = at(kind);
    if (place.open != nullptr) {
      place.open->drop_spares();
      place.read_only = std::move(place.open);
    }
    give_reason(kind, std::move(why), may_hold);
  }

 private:
  struct Place {
    std::unique_ptr<store::Tier> open;
    std::unique_ptr<store::Tier> read_only;
    std::unique_ptr<store::Tier> before;  // the last one that was closed
    Error why_not;
    bool may_hold = false;
  };

  const Place& at(config::TierKind kind) const { return places_[static_cast<std::size_t>(kind)]; }
  Place& at(config::TierKind kind) { return places_[static_cast<std::size_t>(kind)]; }
  void give_reason(config::TierKind kind, Error why, bool may_hold) {
    at(kind).why_not = std::move(why);
    at(kind).may_hold = may_hold;
  }
  Result<store::Tier*> or_reason(store::Tier* tier, config::TierKind kind) const {
    if (tier != nullptr) return tier;
    return fail(why_not(kind));
  }

  std::array<Place, 3> places_;
};

inline constexpr config::TierKind kAllTiers[] = {config::TierKind::memory, config::TierKind::local,
                                                 config::TierKind::global};
inline constexpr config::TierKind kNodeTiers[] = {config::TierKind::memory,
                                                  config::TierKind::local};

// Who this process is in the job, and what it works with. It is put together when an instance is
// opened. Steps of the engine get it as const: only the objects that open and close tiers may
// change it.
struct Context {
  sys::Kernel& kernel;
  std::unique_ptr<comm::Comm> comm;
  config::Settings settings;
  Topology topology;
  Tiers tiers;
  LogSink log;
  std::string job;  // the name given at open
  // The ranks of this node that compute. It is empty where the job is none of ranks, but launched.
  std::vector<Neighbour> neighbours = {};
  MachineShare share = {};
  format::JobIdentity identity = {};

  const std::string& job_key() const {
    return identity.key;
  }  // the job's directory name in every tier
  std::uint32_t rank() const { return topology.rank; }
  std::uint32_t rank_count() const {
    return static_cast<std::uint32_t>(topology.node_of_rank.size());
  }
  // Returns the number under which this process makes files in a tier. A process that acts for a
  // node does so beside the ranks of the node.
  std::uint32_t slot_owner() const {
    return topology.by_node ? rank_count() + topology.node : rank();
  }
  std::uint32_t actor(std::uint32_t of_rank) const { return topology.actor_of_rank[of_rank]; }
  // Returns whether this rank acts for a tier for which one rank has to: the node's leader, or rank
  // 0 for the global tier.
  bool acts_for(config::TierKind kind) const {
    return kind == config::TierKind::global ? rank() == 0 : topology.is_leader();
  }
};

// Agrees on success: returns success on all ranks if `mine` is a success on all. Otherwise returns
// on all ranks the error of the lowest failing rank, which it names. Collective.
Status agree(const Context& context, const Status& mine);

// Agrees as agree() does, and on success returns what every rank passed. Collective.
Result<std::vector<ByteVector>> agree_and_gather(const Context& context, const Status& mine,
                                                 ByteView payload);

}  // namespace diapause::engine
