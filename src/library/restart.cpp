// The restart as the calling rank sees it.
#include <fmt/core.h>

#include "engine/accounting/ledger_lines.hpp"
#include "library/engine.hpp"
#include "sys/process.hpp"

namespace diapause::library {
namespace {

RestartInfo info_of(const engine::Restart& restart, std::uint32_t rank) {
  const format::Manifest& manifest = restart.fetched.manifest;
  return {manifest.version.number,        manifest.deepest_level(),
          restart.stepped_back,           manifest.ranks[rank].protected_bytes,
          restart.fetched.greatest_error, restart.fetched.needs_healing};
}

}  // namespace

Result<std::uint64_t> Engine::newest(std::uint64_t at_most) {
  if (off_) return fail(usable().error());
  finish_flights();
  DIAPAUSE_TRY_ASSIGN(const engine::Inventory inventory, take_inventory(*context_));
  for (const engine::StoredVersion& version : inventory.versions) {
    if (version.manifest && version.id.number <= at_most) return version.id.number;
  }
  return fail(no_version(*context_, kNewest, inventory.unread));
}

Status Engine::restart_begin(std::uint64_t version, RestartInfo& info, engine::Purpose purpose) {
  info = {};
  if (off_) return usable();
  DIAPAUSE_TRY(none_is_open());
  const double asked_s = sys::monotonic_s();
  finish_flights();
  DIAPAUSE_TRY(turn_off_if_cut_off(session_->begin({version, purpose, asked_s})));
  lossy_restarts_ = session_->get().fetched.manifest.lossy_restarts;
  info = info_of(session_->get(), context_->rank());
  return {};
}

Status Engine::restore(const std::vector<std::string>& names) {
  if (off_) return usable();
  DIAPAUSE_TRY(session_->check_open("call restart_begin first"));
  DIAPAUSE_TRY(turn_off_if_cut_off(session_->restore(names)));
  return on_restore_ ? engine::agree(*context_, on_restore_()) : Status{};
}

Result<std::string> Engine::restore_files() {
  if (off_) return fail(usable().error());
  DIAPAUSE_TRY(session_->check_open("files are asked for between its begin and its end"));
  DIAPAUSE_TRY(scrub_wait());
  auto path = files_.restore(session_->get().image());
  DIAPAUSE_TRY(engine::agree(*context_, path ? Status{} : fail(path.error())));
  return path;
}

Status Engine::restart(std::uint64_t version, RestartInfo& info) {
  session_->forget_lost();
  while (true) {
    Status begun = restart_begin(version, info, engine::Purpose::place);
    if (!begun) {
      if (session_->has_lost())
        begun.error().message += "; the protected memory holds nothing that can be used";
      if (begun.error().code == Code::not_found)
        keep_slot_ready();  // the program begins from its beginning
      return begun;
    }
    const Status restored = restore({});
    if (restored || !session_->get().lost) {
      const Status ended = restart_end();
      return restored ? ended : restored;
    }
    session_->leave();
  }
}

Status Engine::restart_end() {
  if (off_) return usable();
  DIAPAUSE_TRY(session_->check_open("there is none to end"));
  files_.end_restored();
  capture_->wait();
  session_->account();  // before a checkpoint ends the period in which these phases were
  const engine::Restart& restart = session_->get();
  const engine::FetchedVersion& fetched = restart.fetched;
  if (fetched.greatest_error > 0) ++lossy_restarts_;
  if (ledger_.is_open()) {
    ledger_.append(
        *context_,
        engine::restart_line({host_->incarnation(), &fetched.manifest, restart.stepped_back,
                              session_->reason(), fetched.sources, fetched.needs_healing,
                              sys::monotonic_s() - restart.started_s, fetched.greatest_error}));
  }
  if (fetched.needs_healing) {
    heal();
  } else {
    host_->pin(std::nullopt);
  }
  session_->end();
  keep_slot_ready();
  return {};
}

Result<std::byte*> Engine::map(const std::string& region) {
  if (off_) return fail(usable().error());
  return session_->map(region);
}

}  // namespace diapause::library
