// The ranks that share a machine, and the processors that each of them may use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "format/wire.hpp"

namespace diapause::engine {

struct Context;

// A process of the program.
struct Neighbour {
  std::int64_t process = 0;
  std::uint32_t machine = 0;        // equal for processes that share memory
  std::vector<std::uint32_t> cpus;  // the processors that it may use, ascending

  void put(format::Writer& writer) const;
  bool get(format::Reader& reader);
};

// What a rank has of its machine.
struct MachineShare {
  unsigned ranks = 1;  // that compute there
  unsigned cores = 1;  // that this rank may keep busy
};

// Returns the share of a process. A processor that several processes may use counts as a part of
// one for each of them, so a process that is bound to processors of its own has all of these.
MachineShare share_of(const Neighbour& mine, std::span<const Neighbour> all);

// Finds the ranks on this node, and the share that this rank has of its machine. Ranks that do not
// compute are left out. Needs the topology. Collective.
Status find_neighbours(Context& context);

}  // namespace diapause::engine
