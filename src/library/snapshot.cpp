// The calls made in every iteration: whether a checkpoint or a bit flip is due.
#include <fmt/core.h>

#include <utility>

#include "engine/accounting/ledger_lines.hpp"
#include "library/engine.hpp"
#include "sys/process.hpp"

namespace diapause::library {

// Distributes rank 0's clock, its times of the schedule, and the pace that it has chosen; all are
// equal on all ranks afterwards. Collective.
Result<double> Engine::agree_on_time() {
  struct {
    double now_s;
    policy::Pace pace;
    policy::Schedule::Times times;
  } of_root{sys::monotonic_s() - opened_s_, pacemaker_ ? pacemaker_->pace() : policy::Pace{},
            schedule_.times()};
  DIAPAUSE_TRY(context_->comm->broadcast(std::as_writable_bytes(std::span(&of_root, 1)), 0));
  schedule_.follow(of_root.times);
  schedule_.follow(of_root.pace);
  return of_root.now_s;
}

// Returns the level that is due at this call, or 0 if none is. It is equal on all ranks.
Result<int> Engine::decide_level() {
  if (!schedule_.tick()) return schedule_.calls_due();
  if (schedule_.wants_pace() && pacemaker_) pacemaker_->consider(regions_.bytes());
  DIAPAUSE_TRY_ASSIGN(const double now_s, agree_on_time());
  const int level = schedule_.decide(now_s);
  return deadline_.level_now(*context_, schedule_.until_next_s(), regions_.bytes(), level);
}

// Returns whether a checkpoint is due. A program that is told so must take it; otherwise the next
// question is about the next call.
Result<bool> Engine::is_due() {
  if (off_ || host_->other_rank_count() != 0) return fail(usable().error());
  if (decided_level_.value_or(0) == 0) {
    DIAPAUSE_TRY_ASSIGN(decided_level_, decide_level());
    if (*decided_level_ == 0) {
      catch_up();
      keep_slot_ready();
    }
  }
  return *decided_level_ != 0;
}

Result<bool> Engine::has_nodes_for(int level) const {
  if (level < 1 || level > 4)
    return fail(Code::argument, fmt::format("level {}: levels are 1 to 4", level));
  return context_->topology.node_names.size() >= policy::nodes_needed(context_->settings, level);
}

Status Engine::snapshot(std::uint64_t version, CheckpointInfo& info) {
  info = {};
  info.version = version;
  if (off_ || host_->other_rank_count() != 0) return usable();
  flips_.flip_what_is_due(regions_, sys::monotonic_s() - opened_s_, context_->log);
  const std::optional<int> decided = std::exchange(decided_level_, std::nullopt);
  DIAPAUSE_TRY_ASSIGN(const int level, decided ? Result<int>(*decided) : decide_level());
  if (level == 0) {
    catch_up();
    report_background(info);
    keep_slot_ready();
    return {};
  }
  Status result = checkpoint(version, deepest_possible(level), info);
  if (deadline_.is_last() && host_->is_background() && info.taken) {
    // The program is about to be told to stop, so the outcome that it learns must be final.
    finish_flights();
    info.level_reached = flights_->newest().progress.deepest_level();
    if (result) result = flights_->newest().progress.result;
  }
  const std::optional<Stop> stop =
      deadline_.note_checkpoint(*context_, version, info.level_reached);
  if (stop && ledger_.is_open()) {
    ledger_.append(*context_, engine::stop_line({host_->incarnation(), in_words(*stop), version,
                                                 info.level_reached}));
  }
  return result;
}

// Returns the level to take. A schedule may name levels for which the job has too few nodes, as the
// default one does on a single node. Level 1 is taken instead, and one message says so for all such
// levels.
int Engine::deepest_possible(int level) {
  if (has_nodes_for(level).value_or(true)) return level;
  if (!told_too_few_nodes_ && context_->rank() == 0) tell_of_too_few_nodes();
  told_too_few_nodes_ = true;
  return 1;
}

void Engine::tell_of_too_few_nodes() {
  const config::Settings& settings = context_->settings;
  const std::size_t nodes = context_->topology.node_names.size();
  std::string needs;
  for (int level = 2; level <= 3; ++level) {
    const std::size_t needed = policy::nodes_needed(settings, level);
    const config::Interval& interval = settings.level(level).interval;
    const bool is_scheduled = interval.seconds > 0 || interval.calls > 0;
    if (!is_scheduled || nodes >= needed) continue;
    needs += fmt::format("{}level {} needs {} nodes", needs.empty() ? "" : ", ", level, needed);
  }
  context_->log(
      Severity::information,
      fmt::format(
          "this job runs on {} node{}, and the schedule names levels that mean nothing here ({}): "
          "level 1 is taken when they are due",
          nodes, nodes == 1 ? "" : "s", needs));
}

}  // namespace diapause::library
