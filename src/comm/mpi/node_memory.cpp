#include "comm/mpi/node_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "comm/mpi/mpi_error.hpp"
#include "sys/tasks.hpp"

namespace diapause::comm {
namespace {

// Returns the node's memory if this rank can have it. Collective over `node`.
Result<std::optional<sys::SharedMemory>> open_memory(MPI_Comm node, bool creates,
                                                     std::uint64_t bytes) {
  sys::SharedMemory::Handle handle;
  std::optional<sys::SharedMemory> memory;
  if (creates) {
    auto created = sys::SharedMemory::create(bytes);
    if (created) memory.emplace(std::move(*created));
    if (memory) handle = memory->handle().value_or(handle);
  }
  DIAPAUSE_TRY(check(MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, node), "MPI_Bcast"));
  if (creates || handle.descriptor < 0) return memory;
  auto opened = sys::SharedMemory::open(handle, bytes);
  if (opened) memory.emplace(std::move(*opened));
  return memory;
}

}  // namespace

Result<NodeMemory> share_node_memory(MPI_Comm comm, MPI_Comm node,
                                     const std::function<std::uint64_t(std::uint32_t)>& bytes) {
  int place = 0;
  int ranks = 0;
  DIAPAUSE_TRY(check(MPI_Comm_rank(node, &place), "MPI_Comm_rank"));
  DIAPAUSE_TRY(check(MPI_Comm_size(node, &ranks), "MPI_Comm_size"));
  NodeMemory result{static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(ranks),
                    std::nullopt};
  DIAPAUSE_TRY_ASSIGN(result.memory, open_memory(node, place == 0, bytes(result.ranks)));
  // The least of: whether a rank has the memory, and minus the greatest number of ranks of a node.
  int mine[2] = {result.memory ? 1 : 0, -ranks};
  int all[2] = {};
  DIAPAUSE_TRY(check(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, comm), "MPI_Allreduce"));
  const bool is_of_use = all[0] == 1 && all[1] < -1;
  if (!is_of_use) result.memory.reset();
  if (result.memory) result.memory->close_handle();
  return result;
}

Result<unsigned> processors_of(MPI_Comm node) {
  constexpr std::uint32_t kBits = 64;
  std::array<std::uint64_t, 128> used{};  // a bit for each processor
  for (const std::uint32_t processor : sys::usable_cpus()) {
    if (processor < used.size() * kBits)
      used[processor / kBits] |= std::uint64_t{1} << processor % kBits;
  }
  DIAPAUSE_TRY(check(MPI_Allreduce(MPI_IN_PLACE, used.data(), static_cast<int>(used.size()),
                                   MPI_UINT64_T, MPI_BOR, node),
                     "MPI_Allreduce"));
  int count = 0;
  for (const std::uint64_t bits : used) count += std::popcount(bits);
  return static_cast<unsigned>(std::max(count, 1));
}

}  // namespace diapause::comm
