// Memory that the ranks of a node share.
#pragma once

#include <mpi.h>

#include <functional>
#include <optional>

#include "base/result.hpp"
#include "sys/shared_memory.hpp"

namespace diapause::comm {

struct NodeMemory {
  std::uint32_t place = 0;  // place of this rank among those of its node
  std::uint32_t ranks = 1;  // number of ranks on the node
  std::optional<sys::SharedMemory> memory;
};

// Opens memory of `bytes(ranks of the node)`, all zeros. Afterwards either all ranks of `comm` have
// it, or none has it, because it cannot be had or because each rank is alone on its node. `node`
// has the ranks of `comm` that share memory. Collective over `comm`.
Result<NodeMemory> share_node_memory(MPI_Comm comm, MPI_Comm node,
                                     const std::function<std::uint64_t(std::uint32_t)>& bytes);

// Returns on how many processors the ranks of `node` may run, all together; each of them may be
// bound to a few. Collective over `node`.
Result<unsigned> processors_of(MPI_Comm node);

}  // namespace diapause::comm
