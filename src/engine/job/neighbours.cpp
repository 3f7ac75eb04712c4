#include "engine/job/neighbours.hpp"

#include <algorithm>
#include <map>

#include "engine/job/gather.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {

void Neighbour::put(format::Writer& writer) const {
  writer.u64(static_cast<std::uint64_t>(process));
  writer.u32(machine);
  writer.u64(cpus.size());
  for (const std::uint32_t cpu : cpus) writer.u32(cpu);
}

bool Neighbour::get(format::Reader& reader) {
  process = static_cast<std::int64_t>(reader.u64());
  machine = reader.u32();
  const std::uint64_t count = reader.u64();
  if (!reader.has_items(count, sizeof(std::uint32_t))) return false;
  cpus.resize(count);
  for (std::uint32_t& cpu : cpus) cpu = reader.u32();
  return reader.ok();
}

MachineShare share_of(const Neighbour& mine, std::span<const Neighbour> all) {
  std::map<std::uint32_t, unsigned> users;  // of each of this process's processors
  for (const std::uint32_t cpu : mine.cpus) users[cpu] = 0;
  MachineShare share{0, 0};
  for (const Neighbour& one : all) {
    if (one.machine != mine.machine) continue;
    ++share.ranks;
    for (const std::uint32_t cpu : one.cpus) {
      if (const auto found = users.find(cpu); found != users.end()) ++found->second;
    }
  }
  share.ranks = std::max(share.ranks, 1U);
  if (users.empty()) {  // the kernel does not say
    share.cores = std::max(sys::usable_cores() / share.ranks, 1U);
    return share;
  }
  constexpr double kRounding = 1e-6;
  double cores = kRounding;
  for (const auto& [cpu, count] : users) cores += 1.0 / std::max(count, 1U);
  share.cores = std::max(static_cast<unsigned>(cores), 1U);
  return share;
}

Status find_neighbours(Context& context) {
  const Topology& topology = context.topology;
  const Neighbour mine{sys::process_id(), context.comm->node_leader(), sys::usable_cpus()};
  DIAPAUSE_TRY_ASSIGN(const std::vector<Neighbour> all, gather_one(*context.comm, mine));
  std::vector<std::uint32_t> dedicated;  // by node
  if (context.settings.async.mode == config::AsyncMode::rank) dedicated = last_ranks(topology);
  std::vector<Neighbour> computing;
  for (std::uint32_t rank = 0; rank < context.rank_count(); ++rank) {
    const std::uint32_t node = topology.node_of_rank[rank];
    if (!dedicated.empty() && dedicated[node] == rank) continue;
    computing.push_back(all[rank]);
    if (node == topology.node) context.neighbours.push_back(all[rank]);
  }
  context.share = share_of(mine, computing);
  return {};
}

}  // namespace diapause::engine
