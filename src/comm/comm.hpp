// The communication that the engine needs between the ranks of a job. There are implementations for
// one process (self_comm), for MPI (mpi_comm), for the agents of launched jobs
// (src/agent/node_comm), and for threads of one process in tests. Every call is collective unless
// its contract says otherwise. Calls on one Comm must not overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "comm/file_writer.hpp"
#include "comm/pause.hpp"
#include "comm/relay.hpp"

namespace diapause::comm {

struct Send {
  std::uint32_t peer;
  ByteView data;
};
struct Receive {
  std::uint32_t peer;
  MutableBytes data;
};

class Comm {
 public:
  virtual ~Comm() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;

  // Returns whether several threads of a process may communicate at once, each on a Comm of its
  // own. Not collective.
  virtual bool is_concurrent() const = 0;

  // Returns a Comm of the ranks that pass a Part, and null to the others. Its ranks are in
  // ascending order of `place`, and in the order of this Comm where places are equal.
  struct Part {
    std::uint32_t place = 0;
    Waiting waiting = Waiting::patient;
    // All calls of the new Comm communicate through the relay; null: in the calling thread.
    std::shared_ptr<Relay> relay = nullptr;
  };
  virtual Result<std::unique_ptr<Comm>> split(const std::optional<Part>& part) = 0;

  // From this call on, calls of this rank that wait for other ranks call `meanwhile` again and
  // again. It may use other Comms. Not collective.
  virtual void while_waiting(std::function<void()> meanwhile) = 0;

  // Returns the lowest rank among those that share memory with this rank (its node). Not
  // collective.
  virtual std::uint32_t node_leader() const = 0;

  virtual Status barrier() = 0;
  // Fills `data` on all ranks with the bytes of `root`. `data` has the same length on all ranks.
  virtual Status broadcast(MutableBytes data, std::uint32_t root) = 0;
  // Returns on all ranks what each rank passed: entry r comes from rank r. Lengths may differ and
  // may be zero.
  virtual Result<std::vector<ByteVector>> all_gather(ByteView mine) = 0;
  // Replaces each value by the least of those that the ranks have in its place. All ranks pass as
  // many.
  virtual Status all_min(std::span<std::uint64_t> values) = 0;
  Result<std::uint64_t> all_min(std::uint64_t value);
  Result<std::uint64_t> all_max(std::uint64_t value);

  // Sends to and receives from the named peers at once, and returns when all transfers are done.
  // The i-th Send to a peer meets that peer's i-th Receive from this rank, which must have the same
  // length (below 2 GiB). Collective only among the peers named.
  virtual Status exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

  // Returns a writer for the ranks of this Comm, which must outlive it, and null if there is none
  // without MPI. Not collective.
  virtual std::unique_ptr<FileWriter> file_writer() const { return nullptr; }
};

}  // namespace diapause::comm
