// A restart that has begun: the version that was chosen, and this rank's image of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/accounting/account.hpp"
#include "engine/job/inventory.hpp"
#include "redundancy/recovery.hpp"
#include "store/image_reader.hpp"

namespace diapause::engine {

// The use that will be made of a version that is fetched.
enum class Purpose {
  // Regions are read straight into the program's memory by Fetch::deliver(), and every block is
  // checked there.
  place,
  copy,          // regions are copied into the program's memory, with every block checked before
  map_checked,   // regions become memory of the program; every block is checked before
  map_unchecked  // this rank's own file is left to be checked while the program runs
};

// One version's images on all ranks.
struct FetchedVersion {
  format::Manifest manifest;
  // This rank's; verified, but for Purpose::place, where it may have nothing but its index.
  store::ImageReader image;
  unsigned reading_threads = 1;  // so many threads may deliver the image
  double greatest_error = 0;     // greatest error on any rank; 0 if all values are exact
  // Tells people where each rank's image came from: "own node", "peer node1", "parity", "global".
  std::vector<std::string> sources;
  bool needs_healing = false;  // a level the version had does not hold any more
  // Where nothing but files that are missing does that: the tier that they belong to.
  std::optional<config::TierKind> incomplete_in;
  // This rank's image once more, whose blocks are still to be checked.
  std::optional<store::ImageReader> unchecked;
  std::vector<Phase> phases;  // the phases of the restart so far
};

// Gets one version's images on all ranks, from wherever they are intact. All calls are collective.
class Fetch {
 public:
  // `context` must outlive the object.
  Fetch(const Context& context, StoredVersion version, Purpose purpose);
  Fetch(Fetch&&) noexcept;
  Fetch& operator=(Fetch&&) noexcept;
  ~Fetch();

  // Code::corrupt if the version cannot be had, with the reasons; Code::again if nothing is known
  // to be damaged, and the system was short of something.
  Result<FetchedVersion> get();

  // Reads every region r with targets[r] not null of the image that get() gave to this rank
  // straight to that place, and checks every block. After a failure the targets hold no data that
  // can be used.
  Status deliver(store::ImageReader& image, std::span<std::byte* const> targets);

  // After Purpose::place: `mine` tells whether the image that get() gave to this rank was sound
  // when it was read. Returns true if the images of all ranks were. Otherwise get() gives images
  // from other sources, and checks them before.
  Result<bool> was_sound(const Status& mine);

 private:
  class Fetcher;
  std::unique_ptr<Fetcher> fetcher_;
};

struct Restart {
  Fetch fetch;
  FetchedVersion fetched;
  Purpose purpose = Purpose::copy;
  double started_s = 0;
  bool stepped_back = false;
  std::vector<format::VersionId> damaged;  // newer ones, which no rank can have any more
  std::optional<Error> lost;               // the reason why the version cannot be used

  store::ImageReader& image() { return fetched.image; }
  const store::ImageReader& image() const { return fetched.image; }
};

}  // namespace diapause::engine
