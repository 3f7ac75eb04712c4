// The ranks of a job and the nodes that they are on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "comm/comm.hpp"
#include "config/settings.hpp"

namespace diapause::engine {

// The assignment of ranks to nodes. It is equal on all ranks except for the first two members.
struct Topology {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;  // the node of this rank
  std::vector<std::uint32_t> node_of_rank;
  std::vector<std::string> node_names;
  std::vector<std::uint32_t> leaders;  // the lowest rank of each node

  // Behind the capture, either every rank acts for itself, or one process acts for all ranks of its
  // node. actor_of_rank gives, for each rank, the place of the process that acts for it in a Comm
  // of the acting processes.
  std::vector<std::uint32_t> actor_of_rank;
  std::vector<std::uint32_t> acted_for;  // the ranks that this process acts for, ascending
  bool by_node = false;

  bool is_leader() const { return leaders[node] == rank; }
  bool acts_for(std::uint32_t of_rank) const {
    return actor_of_rank[of_rank] == actor_of_rank[rank];
  }
};

// Returns the topology as seen by the process that acts for all ranks of its node, in a Comm with
// one such process per node.
Topology acting_for_nodes(Topology topology);

// Finds out which ranks share a node. The nodes are in the order of their lowest ranks. Collective.
Result<Topology> find_topology(comm::Comm& comm, const config::Settings& settings,
                               const std::string& host_name);

// Returns the last rank of each node.
std::vector<std::uint32_t> last_ranks(const Topology& topology);

// Removes the last rank of each node, which is dedicated to act for its node. The others are
// renumbered in their order. A dedicated rank gets the topology as the first rank of its node sees
// it. Code::config names a node that has only one rank.
struct Parted {
  Topology computing;
  bool is_dedicated = false;
};
Result<Parted> dedicate_last_ranks(const Topology& whole);

}  // namespace diapause::engine
