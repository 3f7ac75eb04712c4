// The starts of the job, counted in its global directory, so that no two get the same incarnation, on whatever nodes
// they run; and which history a version belongs to. docs/decisions/0032-starts-are-counted-in-the-global-directory.md.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/job/context.hpp"
#include "engine/job/inventory.hpp"
#include "format/starts.hpp"

namespace diapause::engine {

// Kept by whoever acts for the global tier; without a global tier that can be used it counts by what the tiers hold.
class StartBook {
 public:
  // The incarnation of this start, one that none of the counted starts had, and at least that. Written down before
  // it is returned. Collective.
  Result<std::uint32_t> begin(Context& context, std::uint32_t at_least);

  // What this start went on from, and that it has published a version. Failures are logged. Not collective.
  void note_restart(Context& context, const format::VersionId& from);
  void note_version(Context& context);

 private:
  void write(Context& context) const;
  format::Start* mine(Context& context);

  format::Starts starts_;
  std::uint32_t incarnation_ = 0;
};

// Logs, by rank 0, what a restart from `chosen` leaves aside that is of another history: versions of a start that the
// one behind `chosen` did not go on from, and later starts whose versions cannot be reached from these nodes. Not
// collective.
void tell_of_other_histories(Context& context, const std::vector<StoredVersion>& versions,
                             const format::VersionId& chosen);

}  // namespace diapause::engine
