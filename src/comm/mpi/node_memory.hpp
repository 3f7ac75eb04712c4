// Memory that the ranks of a node share.
#pragma once

#include <mpi.h>

#include <functional>
#include <optional>

#include "base/result.hpp"
#include "sys/shared_memory.hpp"

namespace diapause::comm {

struct NodeMemory {
  std::uint32_t place = 0;  // of this rank among those of its node
  std::uint32_t ranks = 1;  // of the node
  std::optional<sys::SharedMemory> memory;
};

// Opens memory of `bytes(ranks of the node)`, all zeros. All ranks of `comm` have it afterwards, or
// none: where it cannot be had, and where each rank is alone on its node. `node` has the ranks of
// `comm` that share memory. Collective over `comm`.
Result<NodeMemory> share_node_memory(MPI_Comm comm, MPI_Comm node,
                                     const std::function<std::uint64_t(std::uint32_t)>& bytes);

}  // namespace diapause::comm
