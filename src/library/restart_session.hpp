// The restart of an instance: the version that was chosen, its regions on their way into the
// program's memory, and what of it was mapped and may still have to be checked.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/name_search.hpp"
#include "engine/host/host.hpp"
#include "engine/restart/fetch.hpp"
#include "engine/restart/scrub.hpp"
#include "library/again.hpp"
#include "library/region_table.hpp"
#include "library/version_search.hpp"

namespace diapause::library {

// All calls come from the program's thread. Calls that are marked collective give the same status
// on all ranks.
class RestartSession {
 public:
  // All of these must outlive the object.
  RestartSession(const engine::Context& context, engine::Host& host, RegionTable& regions,
                 const AgainNote& note)
      : context_(context), host_(host), regions_(regions), again_note_(note) {}

  // Chooses a version, fetches its images and pins it, so that the restart is open. The versions
  // that turned out to be lost since forget_lost() are passed over. It fails as
  // VersionSearch::run() does, and with Code::argument if a restart is open or if the ranks do not
  // ask for the same version. Collective.
  Status begin(const WantedVersion& wanted);
  // Reads these protected regions, or all of them if there are no names, into the program's memory.
  // Nothing is written on any rank before the regions of all ranks fit. Code::mismatch and
  // Code::argument name the region that does not. With engine::Purpose::place, an image that turns
  // out to be damaged is taken from elsewhere; if that is impossible, the version is lost.
  // Collective.
  Status restore(const std::vector<std::string>& names);
  // Leaves the phases of the restart to the account of energy. The restart is open until end().
  void account();
  // Ends the restart. The version stays pinned.
  void end() {
    stored_names_.reset();
    restart_.reset();
  }
  // Ends the restart of a version that is lost.
  void leave();

  bool is_open() const { return restart_.has_value(); }
  // The open restart.
  engine::Restart& get() { return *restart_; }
  const engine::Restart& get() const { return *restart_; }
  // Returns the place of the region of that name in the index of the open restart, if it is there.
  std::optional<std::size_t> find_stored(const std::string& region);
  // Code::argument if no restart is open; `what_for` says what the program must do before.
  Status check_open(const char* what_for) const;
  // A line for each version that the last begin() passed over.
  const std::string& reason() const { return reason_; }

  bool has_lost() const { return !lost_.empty(); }
  void forget_lost() { lost_.clear(); }

  // Gives a stored region as memory of the program, which lives until unmap() or the end of this
  // object. Not collective.
  Result<std::byte*> map(const std::string& region);
  // Code::argument if nothing was mapped at this address, or a region is protected there.
  Status unmap(std::byte* data);
  // Waits until everything that begin() left to be checked is checked, and returns whether it is
  // sound; later calls return the same. Collective.
  Status wait_for_scrub();

 private:
  Result<std::vector<std::byte*>> targets_of(const std::vector<std::string>& names);
  Status deliver(const std::vector<std::byte*>& targets);
  void reject_damaged();
  void begin_scrub();
  Error for_now(const Error& why) const;

  const engine::Context& context_;
  engine::Host& host_;
  RegionTable& regions_;
  const AgainNote& again_note_;
  std::optional<engine::Restart> restart_;
  std::optional<NameSearch<format::Region>> stored_names_;  // of its image, once one was looked for
  std::size_t next_stored_ = 0;  // programs ask, as a rule, in the order in which they are stored
  LostVersions lost_;
  std::string reason_;
  std::map<std::byte*, sys::PrivateMemory> mapped_;  // by the address of the first byte
  std::unique_ptr<engine::Scrub> scrub_;  // for this rank's image, if it was left to be checked
  bool is_scrubbed_ = true;               // also: all ranks know the result
  std::optional<Error> scrub_found_;      // it is kept until another restart succeeds
};

}  // namespace diapause::library
