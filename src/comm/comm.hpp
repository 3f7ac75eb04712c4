// What the engine needs of the ranks it runs on. Implementations: one process (self_comm), MPI (mpi_comm), and
// threads of one process in tests. Every call is collective unless said otherwise; calls on one Comm do not overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"
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

// A rank's part of a file that ranks write together.
struct FilePart {
  std::string path;          // exists
  std::uint32_t number = 0;  // of the file; the same number at the same path
  std::uint64_t offset = 0;
};

class Comm {
 public:
  virtual ~Comm() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;

  // Whether several threads of a process may communicate at once, each on a Comm of its own. Not collective.
  virtual bool is_concurrent() const = 0;

  // A Comm of the ranks that give a Part, in ascending order of their places, and of ranks where those are equal; null
  // for the others.
  struct Part {
    std::uint32_t place = 0;
    Waiting waiting = Waiting::patient;
    std::shared_ptr<Relay> relay =
        nullptr;  // through which all calls of the new Comm communicate; null: in the calling thread
  };
  virtual Result<std::unique_ptr<Comm>> split(const std::optional<Part>& part) = 0;

  // From here on, calls that wait for other ranks call `meanwhile` again and again. On all ranks or on none; its own
  // calls on other Comms are fine. Not collective.
  virtual void while_waiting(std::function<void()> meanwhile) = 0;

  // Lowest rank among those that share this rank's memory (its node). Not collective.
  virtual std::uint32_t node_leader() const = 0;

  virtual Status barrier() = 0;
  // Fills `data` on all ranks with the bytes of `root`; equal length everywhere.
  virtual Status broadcast(MutableBytes data, std::uint32_t root) = 0;
  // Entry r is what rank r gave; lengths may differ, zero included.
  virtual Result<std::vector<ByteVector>> all_gather(ByteView mine) = 0;
  virtual Result<std::uint64_t> all_min(std::uint64_t value) = 0;
  virtual Result<std::uint64_t> all_max(std::uint64_t value) = 0;

  // Not collective over all ranks: sends and receives between the peers named, all at once, until all are done.
  // The i-th Send to a peer meets the i-th Receive from us there, of the same length (below 2 GiB).
  virtual Status exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

  // Whether write_files() can be called. Not collective.
  virtual bool has_file_writes() const { return false; }
  // Writes `bytes` by collective writes, syncs them, and reads them back: all ranks call this, each with its own part.
  // Code::io if this rank's part is not in its file; the others are not told.
  virtual Status write_files(const FilePart& part, ByteSource& bytes);
};

}  // namespace diapause::comm
