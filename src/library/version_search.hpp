// The search for a version that can be restored, from the newest to older ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/job/decision.hpp"
#include "engine/job/inventory.hpp"
#include "engine/restart/fetch.hpp"

namespace diapause::library {

// Versions that turned out to be lost while they were restored, and why.
using LostVersions = std::map<format::VersionId, Error>;

// Says which version a restart asks for.
struct WantedVersion {
  std::uint64_t number = engine::Decider::kNewest;
  engine::Purpose purpose = engine::Purpose::copy;
  double asked_s = 0;  // when the program asked, by the monotonic clock
};

// The error of a job that has no version of this number, or none at all. `unread`: why a tier was
// left out that may hold versions.
Error no_version(const engine::Context& context, std::uint64_t number,
                 const std::optional<Error>& unread);

class VersionSearch {
 public:
  // `context` and `lost` must outlive the object. The versions in `lost` are passed over.
  VersionSearch(const engine::Context& context, const WantedVersion& wanted,
                const LostVersions& lost)
      : context_(context), wanted_(wanted), lost_(lost) {}

  // Fetches the newest version with the wanted number whose images all ranks can have. It fails
  // with Code::not_found, with Code::mismatch if another number of ranks has written the version,
  // with Code::corrupt or Code::io if no version can be had, with Code::comm, and with Code::again
  // if the system was short of something, so that a version may be sound and could not be read. It
  // is called once. Collective.
  Result<engine::Restart> run();

  // A line for each tier and version that was passed over, with the cause.
  const std::string& reason() const { return reason_; }

 private:
  Result<std::optional<engine::Restart>> consider(engine::StoredVersion& candidate);
  Result<std::optional<engine::Restart>> fetch(engine::StoredVersion& candidate);
  void pass_over(const format::VersionId& id, const Error& why);
  Error failure() const;

  const engine::Context& context_;
  const WantedVersion wanted_;
  const LostVersions& lost_;
  engine::Inventory inventory_;
  std::vector<format::VersionId> damaged_;
  // This is the worst error of the versions that were passed over; Code::not_found if there were
  // none.
  Code refusal_ = Code::not_found;
  bool is_stepping_back_ = false;
  std::string reason_;
};

}  // namespace diapause::library
