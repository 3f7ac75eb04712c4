// Has what the dump and the restore of a job's processes on one node must hear from the other nodes
// of the job. All calls are made on all nodes in the same order; if one fails anywhere, all fail.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

class OtherNodes {
 public:
  virtual ~OtherNodes() = default;

  virtual std::uint32_t own_number() const = 0;
  // Returns whether a message about this address is about a node of the job.
  virtual bool is_of_job(const ByteVector& address) const = 0;

  // Finds the other ends of TCP connections by their addresses, given as plain_address() gives
  // them.
  struct Addresses {
    ByteVector local, remote;
  };
  struct Place {
    std::uint32_t node = kNone,
                  number = 0;  // kNone: no node has it. The number is that of the list given there
  };
  virtual Result<std::vector<Place>> find(const std::vector<Addresses>& ends) = 0;
  // Gives to the other end of each connection the bytes beside it, and returns what each other end
  // gave.
  virtual Result<std::vector<ByteVector>> swap(const std::vector<Place>& peers,
                                               const std::vector<ByteVector>& bytes) = 0;
  // Returns the greatest value of all nodes, when all have called.
  virtual Result<std::uint64_t> greatest(std::uint64_t value) = 0;
};

}  // namespace diapause::process
