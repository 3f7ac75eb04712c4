#include "engine/job/topology.hpp"

#include <fmt/core.h>

#include <map>

#include "engine/job/gather.hpp"

namespace diapause::engine {

Result<Topology> find_topology(comm::Comm& comm, const config::Settings& settings,
                               const std::string& host_name) {
  // A key identifies a rank's node: the number of an emulated node, or the leader of the ranks that
  // share memory, and the node's name.
  const bool emulated = settings.ranks_per_node > 0;
  const std::uint32_t number =
      emulated ? comm.rank() / settings.ranks_per_node : comm.node_leader();
  std::string name = settings.node_name.empty() ? host_name : settings.node_name;
  if (emulated) {
    name = number < settings.node_names.size() ? settings.node_names[number]
                                               : fmt::format("node{}", number);
  }
  const std::string key = fmt::format("{}/{}", number, name);
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> keys, gather_one(comm, key));

  Topology topology;
  topology.rank = comm.rank();
  std::map<std::string, std::uint32_t> nodes;
  for (std::uint32_t r = 0; r < keys.size(); ++r) {
    const auto [found, is_new] =
        nodes.try_emplace(keys[r], static_cast<std::uint32_t>(nodes.size()));
    if (is_new) {
      topology.node_names.push_back(keys[r].substr(keys[r].find('/') + 1));
      topology.leaders.push_back(r);
    }
    topology.node_of_rank.push_back(found->second);
  }
  topology.node = topology.node_of_rank[topology.rank];
  for (std::uint32_t r = 0; r < keys.size(); ++r) topology.actor_of_rank.push_back(r);
  topology.acted_for = {topology.rank};
  return topology;
}

Topology acting_for_nodes(Topology topology) {
  topology.rank = topology.leaders[topology.node];
  topology.by_node = true;
  topology.actor_of_rank = topology.node_of_rank;
  topology.acted_for.clear();
  for (std::uint32_t r = 0; r < topology.node_of_rank.size(); ++r) {
    if (topology.node_of_rank[r] == topology.node) topology.acted_for.push_back(r);
  }
  return topology;
}

std::vector<std::uint32_t> last_ranks(const Topology& topology) {
  std::vector<std::uint32_t> last(topology.leaders);
  for (std::uint32_t r = 0; r < topology.node_of_rank.size(); ++r)
    last[topology.node_of_rank[r]] = r;
  return last;
}

Result<Parted> dedicate_last_ranks(const Topology& whole) {
  const std::vector<std::uint32_t> last = last_ranks(whole);
  for (std::size_t node = 0; node < last.size(); ++node) {
    if (last[node] != whole.leaders[node]) continue;
    return fail(Code::config,
                fmt::format("async.mode is \"rank\", which dedicates the last rank of each node, "
                            "and {} has only rank {}: "
                            "start at least 2 ranks on every node, or set async.mode to \"thread\"",
                            whole.node_names[node], last[node]));
  }
  Parted parted;
  parted.is_dedicated = last[whole.node] == whole.rank;
  Topology& computing = parted.computing;
  computing.node = whole.node;
  computing.node_names = whole.node_names;
  computing.leaders.resize(last.size());
  for (std::uint32_t r = 0; r < whole.node_of_rank.size(); ++r) {
    const std::uint32_t node = whole.node_of_rank[r];
    if (r == last[node]) continue;
    const auto number = static_cast<std::uint32_t>(computing.node_of_rank.size());
    if (r == whole.leaders[node]) computing.leaders[node] = number;
    if (r == whole.rank) computing.rank = number;
    computing.node_of_rank.push_back(node);
    computing.actor_of_rank.push_back(number);
  }
  if (parted.is_dedicated) computing.rank = computing.leaders[whole.node];
  computing.acted_for = {computing.rank};
  return parted;
}

}  // namespace diapause::engine
