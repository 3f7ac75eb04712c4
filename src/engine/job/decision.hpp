// The decision that all ranks agree on before a capture. Every front end that takes checkpoints
// begins with it: the library in a rank's own calls, or a process that takes checkpoints of other
// processes.
#pragma once

#include <array>
#include <cstdint>

#include "engine/job/context.hpp"

namespace diapause::engine {

// A decision, as plain bytes: it is broadcast, and copied between processes.
struct Decision {
  std::uint64_t number = 0;
  std::uint64_t created_unix_ns = 0;
  std::int32_t level = 0;
  std::array<std::uint8_t, 16> commit{};
  std::uint8_t ok = 0;               // the system provided the random bytes of the commit id
  std::uint8_t skip = 0;             // too many versions are in flight
  std::uint8_t ends_period = 0;      // a period of the energy account ends afterwards
  std::uint8_t suspect = 0;          // an earlier version was not kept, so the tier may be gone
  std::uint8_t is_prepared = 0;      // every rank has what DecisionRequest::is_prepared says
  std::uint32_t lossy_restarts = 0;  // the number in format::Manifest
};

// The request of a front end. Of the flags, those of rank 0 count for all ranks, except the last.
struct DecisionRequest {
  std::uint64_t number = 0;
  int level = 0;
  std::uint32_t lossy_restarts = 0;
  bool skip = false;
  bool ends_period = false;
  bool suspect = false;
  // This rank knows the layout of its image and has room for it. Where all ranks do, they need not
  // agree on that again.
  bool is_prepared = false;
};

// Makes the decisions. One object decides for all attempts of an instance, because attempts at one
// number are ordered by their count.
class Decider {
 public:
  // This number stands for the newest version and cannot be the number of a version.
  static constexpr std::uint64_t kNewest = UINT64_MAX;

  // Returns the decision of rank 0 on all ranks. It fails with Code::argument on all ranks if a
  // rank asks for another version or level, or for a level that does not exist. Collective.
  Result<Decision> decide(const Context& context, const DecisionRequest& mine);

 private:
  std::uint32_t attempts_ = 0;  // rank 0 counts them
};

}  // namespace diapause::engine
