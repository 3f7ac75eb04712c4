// The restart: which version, its images, and back into the program's memory.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/name_search.hpp"
#include "engine/accounting/ledger_lines.hpp"
#include "library/engine.hpp"
#include "sys/mappings.hpp"
#include "sys/process.hpp"

namespace diapause::library {
namespace {

Status check_fits(const format::Region& stored, const format::Region& wanted, const std::string& job) {
  if (stored.type == wanted.type && stored.element_bytes == wanted.element_bytes && stored.count == wanted.count) {
    return {};
  }
  return fail(
      Code::mismatch,
      fmt::format(
          "region '{}' is stored as {} elements of {} ({} bytes each) and protected as {} of {} ({} bytes each). If "
          "these are the checkpoints of another problem: go on with that one as it was started, open this one under "
          "another name, or remove them with 'diapause prune {} --all'",
          stored.name, stored.count, format::element_type_name(stored.type), stored.element_bytes, wanted.count,
          format::element_type_name(wanted.type), wanted.element_bytes, job));
}

Status check_writable(const ProtectedRegion& region, const sys::Mappings& mappings) {
  const std::string why = mappings.why_unwritable({region.data, region.description.stored_bytes});
  if (why.empty()) return {};
  return fail(Code::argument, fmt::format("region '{}' cannot be restored: {}", region.description.name, why));
}

Status agree_on_call(engine::Context& context, std::uint64_t version, engine::Purpose purpose) {
  const std::uint64_t mine[] = {version, static_cast<std::uint64_t>(purpose)};
  std::uint64_t of_root[] = {mine[0], mine[1]};
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(of_root)), 0));
  if (std::ranges::equal(mine, of_root)) return engine::agree(context, {});
  return engine::agree(
      context,
      fail(Code::argument, "asks for another version, or another way to restart, than rank 0: all must ask alike"));
}

std::string sentence(const format::VersionId& id, const std::string& why) {
  return fmt::format("version {}: {}\n", id.number, why);
}

RestartInfo info_of(const engine::Restart& restart, std::uint32_t rank) {
  const format::Manifest& manifest = restart.fetched.manifest;
  return {manifest.version.number, manifest.deepest_level(), restart.stepped_back, manifest.ranks[rank].protected_bytes,
          restart.fetched.greatest_error};
}

std::string words_on_end(const std::string& job, const store::FinishedMark& mark) {
  std::string text = fmt::format("'{}' was finished, and there are no checkpoints of it since", job);
  if (mark.archive)
    text += fmt::format("; its last version, {}, is kept, and comes back by its number", mark.archive->number);
  return text;
}

// Tells the program to try again. Versions that could not be read may be sound, and newer than all that could: to go on
// without them would lose them.
Error try_again(const engine::Context& context, const std::string& why) {
  return {Code::again, fmt::format("{}\nthe system is short of something for the moment: nothing of '{}' was given up "
                                   "or removed; try again",
                                   why, context.job)};
}

// `refusal`: of the versions that are there; Code::not_found: there are none.
Error why_nothing(const engine::Context& context, std::uint64_t version, Code refusal,
                  const std::optional<Error>& unread, const std::string& reason) {
  if (refusal == Code::not_found && unread) {
    return {unread->code,
            fmt::format("{}\nit may hold checkpoints of '{}', and no other tier does: make it readable, or, to "
                        "start from the beginning, take it out of the configuration",
                        unread->message, context.job)};
  }
  if (refusal == Code::not_found) {
    return {refusal, version == Engine::kNewest ? fmt::format("there are no checkpoints of '{}' yet", context.job)
                                                : fmt::format("there is no version {} of '{}'", version, context.job)};
  }
  const std::string advice =
      refusal != Code::corrupt
          ? "make readable what cannot be read, and start again"
          : fmt::format("to start from the beginning, remove it with 'diapause prune {} --all', or use another name",
                        context.job);
  return {refusal, fmt::format("nothing of '{}' can be restored:\n{}{}", context.job, reason, advice)};
}

}  // namespace

Result<std::uint64_t> Engine::newest(std::uint64_t at_most) {
  if (off_) return fail(usable().error());
  finish_flights();
  DIAPAUSE_TRY_ASSIGN(const engine::Inventory inventory, take_inventory(*context_));
  for (const engine::StoredVersion& version : inventory.versions) {
    if (version.manifest && version.id.number <= at_most) return version.id.number;
  }
  return fail(why_nothing(*context_, kNewest, Code::not_found, inventory.unread, ""));
}

Status Engine::restart_begin(std::uint64_t version, RestartInfo& info, engine::Purpose purpose) {
  info = {};
  restart_reason_.clear();
  if (off_) return usable();
  DIAPAUSE_TRY(none_is_open());
  if (restart_) return fail(Code::argument, "a restart is open already: end it with restart_end first");
  const double start = sys::monotonic_s();
  finish_flights();
  DIAPAUSE_TRY(agree_on_call(*context_, version, purpose));
  DIAPAUSE_TRY_ASSIGN(engine::Inventory inventory, take_inventory(*context_));
  const double listed = sys::monotonic_s();
  const auto fail_for_now = [&](const std::string& why) { return fail(for_now({Code::again, why})); };
  if (inventory.unread && is_of_the_moment(inventory.unread->code)) return fail_for_now(inventory.unread->message);

  Code refusal = Code::not_found;
  bool is_stepping_back = inventory.unread.has_value();
  std::vector<format::VersionId> damaged;
  if (inventory.unread) restart_reason_ += inventory.unread->message + "\n";
  // What cannot be read may be sound: it is not given up.
  const auto step_over = [&](const format::VersionId& id, const Error& why) {
    restart_reason_ += sentence(id, why.message);
    // What is missing elsewhere may lie, sound, where nothing can be read.
    const Code code = why.code == Code::corrupt && inventory.unread ? inventory.unread->code : why.code;
    if (refusal == Code::not_found || code != Code::corrupt) refusal = code;
    if (code == Code::corrupt) damaged.push_back(id);
    is_stepping_back = true;
  };
  std::vector<engine::StoredVersion>& candidates = inventory.versions;
  // What a finished job has left is taken by its number only.
  if (version != kNewest) std::ranges::move(inventory.finished, std::back_inserter(candidates));
  for (engine::StoredVersion& candidate : candidates) {
    if (version != kNewest && candidate.id.number != version) continue;
    if (!candidate.manifest) {
      // Without a manifest and without a damaged one it never was a version: a checkpoint that was cut short.
      if (candidate.problems.empty()) continue;
      if (candidate.is_of_the_moment) return fail_for_now(candidate.problems.front());
      step_over(candidate.id, {candidate.is_unreadable ? Code::io : Code::corrupt, candidate.problems.front()});
      continue;
    }
    if (candidate.manifest->ranks.size() != context_->rank_count()) {
      restart_reason_ += sentence(candidate.id, fmt::format("written by {} ranks, and this run has {}",
                                                            candidate.manifest->ranks.size(), context_->rank_count()));
      return fail(Code::mismatch, restart_reason_ + "run with as many ranks, or open it under another name");
    }
    const auto given_up = given_up_.find(candidate.id);
    if (given_up != given_up_.end()) {
      step_over(candidate.id, given_up->second);
      continue;
    }
    const format::VersionId id = candidate.id;
    engine::Fetch fetch(*context_, std::move(candidate), purpose);
    auto fetched = fetch.get();
    if (!fetched) {
      if (fetched.error().code == Code::comm) {
        off_ = fetched.error();
        return fail(std::move(fetched.error()));
      }
      if (is_of_the_moment(fetched.error().code)) return fail_for_now(sentence(id, fetched.error().message));
      step_over(id, fetched.error());
      continue;
    }
    fetched->phases.push_back(engine::make_phase("inventory", start, listed));
    restart_.emplace(engine::Restart{std::move(fetch), std::move(*fetched), purpose, start, is_stepping_back,
                                     std::move(damaged), std::nullopt});
    if (purpose != engine::Purpose::place) reject_damaged();
    begin_scrub(purpose);
    tell_of_other_histories(*context_, inventory.versions, id);
    host_->pin(id);
    lossy_restarts_ = restart_->fetched.manifest.lossy_restarts;
    info = info_of(*restart_, context_->rank());
    return {};
  }
  if (refusal == Code::not_found && version == kNewest && inventory.mark.incarnation != 0 && !inventory.unread) {
    return fail(Code::not_found, words_on_end(context_->job, inventory.mark));
  }
  return fail(why_nothing(*context_, version, refusal, inventory.unread, restart_reason_));
}

// Turns a shortage into the error that the program is told, and leaves a note for the command that has started it.
Error Engine::for_now(const Error& why) const {
  if (!is_of_the_moment(why.code)) return why;
  again_note_.leave(why.message);
  return try_again(*context_, why.message);
}

Status Engine::restore(const std::vector<std::string>& names) {
  if (off_) return usable();
  if (!restart_) return fail(Code::argument, "no restart is open: call restart_begin first");
  DIAPAUSE_TRY(scrub_wait());
  auto targets = targets_of(names);
  // Nothing is written on any rank unless everything fits on all.
  DIAPAUSE_TRY(engine::agree(*context_, targets ? Status{} : fail(targets.error())));
  const double start = sys::monotonic_s();
  Status restored = deliver(*targets);
  restart_->fetched.phases.push_back(engine::make_phase("restore", start, sys::monotonic_s()));
  if (restored) reject_damaged();
  if (restored && on_restore_) restored = engine::agree(*context_, on_restore_());
  return restored;
}

// Finds the memory for each stored region; null if the region is not wanted. Without names, all protected regions are
// wanted.
Result<std::vector<std::byte*>> Engine::targets_of(const std::vector<std::string>& names) {
  const std::vector<format::Region>& stored = restart_->image().index().regions;
  NameSearch places(stored);
  std::size_t next = 0;  // in the order in which they are stored, as a rule
  std::vector<std::byte*> targets(stored.size());
  const auto mappings = sys::Mappings::read();
  const auto aim_at = [&](const ProtectedRegion& region) -> Status {
    const std::optional<std::size_t> place = places.find(region.description.name, next);
    if (!place) {
      return fail(Code::mismatch, fmt::format("region '{}' is protected, but version {} does not hold it",
                                              region.description.name, restart_->fetched.manifest.version.number));
    }
    DIAPAUSE_TRY(check_fits(stored[*place], region.description, context_->job));
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

// With engine::Purpose::place, an image that turns out to be damaged while it is read comes from elsewhere, until there
// is nothing left. Then Restart::lost says why.
Status Engine::deliver(const std::vector<std::byte*>& targets) {
  while (true) {
    engine::FetchedVersion& fetched = restart_->fetched;
    const Status mine = fetched.image.deliver(targets, fetched.reading_threads);
    if (restart_->purpose != engine::Purpose::place) {
      const Status all = engine::agree(*context_, mine);
      return all ? all : fail(for_now(all.error()));
    }
    const auto sound = restart_->fetch.was_sound(mine);
    if (!sound) return fail(for_now(sound.error()));
    if (*sound) return {};
    auto again = restart_->fetch.get();
    if (!again) {
      if (is_of_the_moment(again.error().code)) return fail(for_now(again.error()));
      if (again.error().code == Code::comm) {
        off_ = again.error();
      } else {
        restart_->lost = again.error();
      }
      return fail(std::move(again.error()));
    }
    again->needs_healing = true;
    again->phases.insert(again->phases.begin(), fetched.phases.begin(), fetched.phases.end());
    fetched = std::move(*again);
  }
}

void Engine::reject_damaged() {
  for (const format::VersionId& id : std::exchange(restart_->damaged, {})) host_->reject(id);
}

Status Engine::restart(std::uint64_t version, RestartInfo& info) {
  given_up_.clear();
  while (true) {
    Status begun = restart_begin(version, info, engine::Purpose::place);
    if (!begun && !given_up_.empty()) begun.error().message += "; the protected memory holds nothing that can be used";
    if (!begun) {
      if (begun.error().code == Code::not_found) keep_slot_ready();  // the program begins from its beginning
      return begun;
    }
    const Status restored = restore({});
    if (restored || !restart_->lost) {
      const Status ended = restart_end();
      return restored ? ended : restored;
    }
    given_up_.emplace(restart_->fetched.manifest.version, *restart_->lost);
    leave_restart();
  }
}

Result<std::string> Engine::restore_files() {
  if (off_) return fail(usable().error());
  if (!restart_) return fail(Code::argument, "no restart is open: files are asked for between its begin and its end");
  DIAPAUSE_TRY(scrub_wait());
  auto path = files_.restore(restart_->image());
  DIAPAUSE_TRY(engine::agree(*context_, path ? Status{} : fail(path.error())));
  return path;
}

Status Engine::restart_end() {
  if (off_) return usable();
  if (!restart_) return fail(Code::argument, "no restart is open");
  files_.end_restored();
  capture_->wait();
  // Before a checkpoint settles the account of the time in which they were.
  account_for_restart();
  if (restart_->fetched.greatest_error > 0) ++lossy_restarts_;
  if (bill_.is_open()) {
    bill_.append(*context_,
                 engine::restart_line({host_->incarnation(), &restart_->fetched.manifest, restart_->stepped_back,
                                       restart_reason_, restart_->fetched.sources, restart_->fetched.needs_healing,
                                       sys::monotonic_s() - restart_->started_s, restart_->fetched.greatest_error}));
  }
  if (restart_->fetched.needs_healing) {
    heal();
  } else {
    host_->pin(std::nullopt);
  }
  restart_.reset();
  keep_slot_ready();
  return {};
}

void Engine::account_for_restart() {
  for (engine::Phase& phase : restart_->fetched.phases) {
    phase.version = restart_->fetched.manifest.version.number;
    phase.bytes = restart_->fetched.manifest.protected_bytes();
  }
  host_->add(restart_->fetched.phases);
}

// Ends the restart of a version that turned out to be lost while it was restored.
void Engine::leave_restart() {
  account_for_restart();
  host_->pin(std::nullopt);
  restart_.reset();
}

}  // namespace diapause::library
