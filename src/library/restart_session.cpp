#include "library/restart_session.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/name_search.hpp"
#include "sys/mappings.hpp"
#include "sys/process.hpp"

namespace diapause::library {
namespace {

Status check_fits(const format::Region& stored, const format::Region& wanted,
                  const std::string& job_key) {
  if (stored.type == wanted.type && stored.element_bytes == wanted.element_bytes &&
      stored.count == wanted.count) {
    return {};
  }
  return fail(Code::mismatch,
              fmt::format("region '{}' is stored as {} elements of {} ({} bytes each) and "
                          "protected as {} of {} ({} bytes each). If "
                          "these are the checkpoints of another problem: go on with that one as it "
                          "was started, open this one under "
                          "another name, or remove them with 'diapause prune {} --all'",
                          stored.name, stored.count, format::element_type_name(stored.type),
                          stored.element_bytes, wanted.count,
                          format::element_type_name(wanted.type), wanted.element_bytes, job_key));
}

Status check_writable(const ProtectedRegion& region, const sys::Mappings& mappings) {
  const std::string why = mappings.why_unwritable({region.data, region.description.stored_bytes});
  if (why.empty()) return {};
  return fail(Code::argument,
              fmt::format("region '{}' cannot be restored: {}", region.description.name, why));
}

Status agree_on_call(const engine::Context& context, const WantedVersion& wanted) {
  const std::uint64_t mine[] = {wanted.number, static_cast<std::uint64_t>(wanted.purpose)};
  std::uint64_t of_root[] = {mine[0], mine[1]};
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(of_root)), 0));
  if (std::ranges::equal(mine, of_root)) return engine::agree(context, {});
  return engine::agree(
      context,
      fail(Code::argument,
           "asks for another version, or another way to restart, than rank 0: all must ask alike"));
}

}  // namespace

Status RestartSession::check_open(const char* what_for) const {
  if (restart_) return {};
  return fail(Code::argument, fmt::format("no restart is open: {}", what_for));
}

Status RestartSession::begin(const WantedVersion& wanted) {
  reason_.clear();
  if (restart_)
    return fail(Code::argument, "a restart is open already: end it with restart_end first");
  DIAPAUSE_TRY(agree_on_call(context_, wanted));
  VersionSearch search(context_, wanted, lost_);
  auto found = search.run();
  reason_ = search.reason();
  if (!found) return fail(for_now(found.error()));
  stored_names_.reset();
  restart_.emplace(std::move(*found));
  if (wanted.purpose != engine::Purpose::place) reject_damaged();
  begin_scrub();
  host_.pin(restart_->fetched.manifest.version);
  return {};
}

// Turns a shortage into the error that tells the program to try again, and leaves a note for the
// command that has started it. Versions that could not be read may be sound, and newer than all
// that could: to go on without them would lose them.
Error RestartSession::for_now(const Error& why) const {
  if (!is_of_the_moment(why.code)) return why;
  again_note_.leave(why.message);
  return {Code::again,
          fmt::format(
              "{}\nthe system is short of something for the moment: nothing of '{}' was given up "
              "or removed; try again",
              why.message, context_.job)};
}

Status RestartSession::restore(const std::vector<std::string>& names) {
  DIAPAUSE_TRY(wait_for_scrub());
  auto targets = targets_of(names);
  // Nothing is written on any rank unless everything fits on all.
  DIAPAUSE_TRY(engine::agree(context_, targets ? Status{} : fail(targets.error())));
  const double start = sys::monotonic_s();
  Status restored = deliver(*targets);
  restart_->fetched.phases.push_back(engine::make_phase("restore", start, sys::monotonic_s()));
  if (restored) reject_damaged();
  return restored;
}

// Finds the memory for each stored region; null if the region is not wanted.
Result<std::vector<std::byte*>> RestartSession::targets_of(const std::vector<std::string>& names) {
  const std::vector<format::Region>& stored = restart_->image().index().regions;
  NameSearch places(stored);
  std::size_t next = 0;  // regions are protected, as a rule, in the order in which they are stored
  std::vector<std::byte*> targets(stored.size());
  std::optional<sys::Mappings> mappings;
  if (!names.empty() || !regions_.are_surely_writable()) {
    if (auto read = sys::Mappings::read()) mappings = std::move(*read);
  }
  const auto aim_at = [&](const ProtectedRegion& region) -> Status {
    const std::optional<std::size_t> place = places.find(region.description.name, next);
    if (!place) {
      return fail(Code::mismatch,
                  fmt::format("region '{}' is protected, but version {} does not hold it",
                              region.description.name, restart_->fetched.manifest.version.number));
    }
    DIAPAUSE_TRY(check_fits(stored[*place], region.description, context_.job_key()));
    if (mappings) DIAPAUSE_TRY(check_writable(region, *mappings));
    targets[*place] = region.data;
    next = *place + 1;
    return {};
  };
  if (names.empty()) {
    for (const ProtectedRegion& region : regions_) DIAPAUSE_TRY(aim_at(region));
  }
  for (const std::string& name : names) {
    DIAPAUSE_TRY_ASSIGN(const ProtectedRegion* const region, regions_.get(name));
    DIAPAUSE_TRY(aim_at(*region));
  }
  return targets;
}

// With engine::Purpose::place, an image that turns out to be damaged while it is read is taken from
// elsewhere, until nothing is left. Then Restart::lost says why.
Status RestartSession::deliver(const std::vector<std::byte*>& targets) {
  while (true) {
    engine::FetchedVersion& fetched = restart_->fetched;
    const Status mine = restart_->fetch.deliver(fetched.image, targets);
    if (restart_->purpose != engine::Purpose::place) {
      const Status all = engine::agree(context_, mine);
      return all ? all : fail(for_now(all.error()));
    }
    const auto sound = restart_->fetch.was_sound(mine);
    if (!sound) return fail(for_now(sound.error()));
    if (*sound) return {};
    auto again = restart_->fetch.get();
    if (!again) {
      const Error& why = again.error();
      if (!is_of_the_moment(why.code) && why.code != Code::comm) restart_->lost = why;
      return fail(for_now(why));
    }
    again->needs_healing = true;
    again->phases.insert(again->phases.begin(), fetched.phases.begin(), fetched.phases.end());
    stored_names_.reset();
    fetched = std::move(*again);
  }
}

void RestartSession::reject_damaged() {
  for (const format::VersionId& id : std::exchange(restart_->damaged, {})) host_.reject(id);
}

void RestartSession::account() {
  for (engine::Phase& phase : restart_->fetched.phases) {
    phase.version = restart_->fetched.manifest.version.number;
    phase.bytes = restart_->fetched.manifest.protected_bytes();
  }
  host_.add(restart_->fetched.phases);
}

void RestartSession::leave() {
  lost_.emplace(restart_->fetched.manifest.version, *restart_->lost);
  account();
  host_.pin(std::nullopt);
  end();
}

std::optional<std::size_t> RestartSession::find_stored(const std::string& region) {
  if (!stored_names_) {
    stored_names_.emplace(restart_->image().index().regions);
    next_stored_ = 0;
  }
  const auto place = stored_names_->find(region, next_stored_);
  if (place) next_stored_ = *place + 1;
  return place;
}

Result<std::byte*> RestartSession::map(const std::string& region) {
  DIAPAUSE_TRY(check_open("regions are mapped between its begin and its end"));
  const std::optional<std::size_t> place = find_stored(region);
  if (!place) {
    return fail(Code::not_found, fmt::format("version {} holds no region '{}'",
                                             restart_->fetched.manifest.version.number, region));
  }
  DIAPAUSE_TRY_ASSIGN(sys::PrivateMemory memory, restart_->image().own_memory(*place));
  std::byte* const data = memory.bytes().data();
  mapped_.emplace(data, std::move(memory));
  return data;
}

Status RestartSession::unmap(std::byte* data) {
  const auto found = mapped_.find(data);
  if (found == mapped_.end())
    return fail(Code::argument, "this is no address that was mapped, or it was unmapped");
  if (const ProtectedRegion* const region = regions_.find_in(found->second.bytes())) {
    return fail(Code::argument,
                fmt::format("region '{}' is protected in this memory: unprotect it first",
                            region->description.name));
  }
  mapped_.erase(found);
  return {};
}

// A new restart makes unimportant what the one before has left open or found.
void RestartSession::begin_scrub() {
  scrub_.reset();
  scrub_found_.reset();
  is_scrubbed_ = restart_->purpose != engine::Purpose::map_unchecked;
  std::optional<store::ImageReader>& unchecked = restart_->fetched.unchecked;
  if (unchecked) scrub_ = std::make_unique<engine::Scrub>(std::move(*unchecked));
  unchecked.reset();
}

Status RestartSession::wait_for_scrub() {
  if (!is_scrubbed_) {
    Status found = agree(context_, scrub_ ? scrub_->wait() : Status{});
    scrub_.reset();
    is_scrubbed_ = true;
    if (!found) scrub_found_ = std::move(found.error());
  }
  if (!scrub_found_) return {};
  return fail(scrub_found_->code,
              scrub_found_->message +
                  "; what was mapped by the last restart may be wrong, and no checkpoint is taken "
                  "of it: restart again");
}

}  // namespace diapause::library
