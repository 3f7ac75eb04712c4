// The starts of the job, counted in its global directory, so that no two get the same incarnation
// on whatever nodes they run, and the history that a version belongs to.
// docs/decisions/0032-starts-are-counted-in-the-global-directory.md.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/job/context.hpp"
#include "engine/job/inventory.hpp"
#include "format/starts.hpp"

namespace diapause::engine {

// The record of starts, kept by the process that acts for the global tier. Without a usable global
// tier, starts are counted by what the tiers hold.
class StartBook {
 public:
  // Returns the incarnation of this start: at least `at_least`, and different from those of all
  // recorded starts. It is recorded before it is returned. Collective.
  Result<std::uint32_t> begin(const Context& context, std::uint32_t at_least);

  // Record what this start was restarted from, and that it has published a version. Failures are
  // logged. Not collective.
  void note_restart(const Context& context, const format::VersionId& from);
  void note_version(const Context& context);

 private:
  void write(const Context& context) const;
  format::Start* mine(const Context& context);

  format::Starts starts_;
  std::uint32_t incarnation_ = 0;
};

// Makes rank 0 log which versions of other histories a restart from `chosen` ignores: versions of
// starts that are no ancestors of `chosen`, and later starts whose versions cannot be reached from
// these nodes. Not collective.
void tell_of_other_histories(const Context& context, const std::vector<StoredVersion>& versions,
                             const format::VersionId& chosen);

}  // namespace diapause::engine
