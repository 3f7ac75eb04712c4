#include "library/pacemaker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "energy/ledger.hpp"
#include "energy/sampler.hpp"
#include "engine/accounting/ledger_lines.hpp"
#include "library/deadline.hpp"
#include "model/rates.hpp"

namespace diapause::library {
namespace {

// Bytes read from the end of the ledger; old checkpoints tell nothing.
constexpr std::uint64_t kMostToRead = 8 * kMiB;

// Returns the powers of the profile, which are used until anything is measured.
model::Powers powers_of_profile(const engine::Context& context) {
  double idle_w = 0;
  double busy_w = 0;
  const auto profile = energy::load_profile(context.settings.energy, context.kernel);
  if (profile) {
    for (const energy::DomainModel& domain : profile->domains) {
      idle_w += domain.idle_w.value;
      busy_w += domain.idle_w.value + domain.busy_w.value;
    }
  }
  // If all powers are equal, joules are proportional to seconds.
  if (!(busy_w > 0)) idle_w = busy_w = 1;
  return model::assumed_powers(static_cast<double>(context.topology.node_names.size()), idle_w,
                               busy_w);
}

bool can_take(const engine::Context& context, int level) {
  const bool has_tier = level < 4 || context.tiers.find(config::TierKind::global) != nullptr;
  return has_tier &&
         context.topology.node_names.size() >= policy::nodes_needed(context.settings, level);
}

}  // namespace

Pacemaker::Pacemaker(const engine::Context& context, engine::LedgerWriter& writer,
                     std::uint32_t incarnation)
    : context_(context),
      writer_(writer),
      incarnation_(incarnation),
      rates_(policy::failure_rates(context.settings.failures, context.topology.node_names.size())),
      choice_(context.settings.auto_schedule),
      assumed_powers_(powers_of_profile(context)),
      worker_(context.settings.async) {
  store::Tier* const global = context.tiers.find(config::TierKind::global);
  if (global != nullptr) {
    auto file = global->directory().open_file(energy::Ledger::kFileName, sys::Access::read);
    if (file) ledger_.emplace(std::move(*file));
  }
  if (!ledger_) {
    context.log(Severity::warning,
                "schedule = \"auto\": there is no ledger to learn from, because the global "
                "directory cannot be used; "
                "the intervals follow from assumed costs");
  }
}

void Pacemaker::consider(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_busy_, true)) return;
  }
  Word word;
  // Rank 0 assumes that all ranks have as much as itself.
  word.bytes = static_cast<double>(bytes) * context_.rank_count();
  for (int level = 1; level <= 4; ++level)
    word.possible[static_cast<std::size_t>(level)] = can_take(context_, level);
  worker_.post([this, word] {
    choose(word);
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
  });
}

policy::Pace Pacemaker::pace() const {
  const std::lock_guard lock(mutex_);
  return pace_;
}

// Reads the new lines. Lines that cannot be read now are read the next time.
void Pacemaker::read_ledger() {
  if (!ledger_) return;
  const auto size = ledger_->size();
  if (!size || *size <= read_to_) return;
  if (*size - read_to_ > kMostToRead) {
    read_to_ = *size - kMostToRead;
    cut_line_.clear();
  }
  std::string text(*size - read_to_, '\0');
  if (!ledger_->read_exact(std::as_writable_bytes(std::span(text)), read_to_)) return;
  read_to_ = *size;
  text.insert(0, std::exchange(cut_line_, {}));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    reader_.add_line(std::string_view(text).substr(begin, end - begin));
  }
  cut_line_ = text.substr(begin);
  if (cut_line_.size() > kMostToRead) cut_line_.clear();
}

model::Powers Pacemaker::powers(const energy::MeasuredJob& measured) const {
  model::Powers powers = assumed_powers_;
  if (measured.compute_w) powers.compute_w = *measured.compute_w;
  if (measured.checkpoint_w) powers.checkpoint_w = powers.restart_w = *measured.checkpoint_w;
  return powers;
}

policy::PaceInputs Pacemaker::inputs(const Word& word, const energy::MeasuredJob& measured) const {
  const auto nodes = static_cast<std::uint32_t>(context_.topology.node_names.size());
  const double bytes = measured.bytes > 0 ? static_cast<double>(measured.bytes) : word.bytes;
  const model::JobSize size{bytes, nodes, context_.settings.group_nodes, context_.settings.parity};
  model::Rates rates;
  rates.storage_mb_s = model::assumed_storage_mb_s(nodes);
  const bool is_background = context_.settings.async.mode != config::AsyncMode::off;
  double least_blocked_s = std::numeric_limits<double>::infinity();
  for (const energy::MeasuredLevel& seen : measured.levels) {
    least_blocked_s = std::min(least_blocked_s, seen.with_room_s.value_or(least_blocked_s));
  }
  if (std::isinf(least_blocked_s)) least_blocked_s = 0;
  std::vector<model::Level> levels;
  std::vector<bool> present;
  for (int number = 1; number <= 4; ++number) {
    const auto index = static_cast<std::size_t>(number);
    const energy::MeasuredLevel& seen = measured.levels[index];
    const model::LevelTimes assumed = model::times_at_rates(number, size, rates);
    model::Level level;
    level.number = number;
    // Every level includes the capture, so a measurement at one level stands for levels without
    // any.
    const double capture_s = std::max(assumed.blocked_s, least_blocked_s);
    level.blocked_s = seen.with_room_s.value_or(capture_s + (is_background ? 0 : assumed.behind_s));
    level.behind_s = seen.behind_s.value_or(is_background ? assumed.behind_s : 0);
    level.slowed = level.behind_s > 0 ? model::kAssumedSlowed : 0;
    level.restart_s =
        seen.restart_s.value_or(seen.with_room_s ? level.blocked_s + level.behind_s
                                                 : std::max(assumed.restart_s, level.blocked_s));
    level.failures_per_s = rates_[index];
    levels.push_back(level);
    present.push_back(word.possible[index]);
  }
  return {model::only_present(levels, present), powers(measured)};
}

void Pacemaker::choose(const Word& word) {
  read_ledger();
  const energy::MeasuredJob measured = reader_.job();
  std::optional<policy::PaceDecision> decision = choice_.consider(inputs(word, measured));
  if (!decision) return;
  for (std::size_t level = 1; level < decision->pace.since.size(); ++level) {
    decision->pace.since[level] = measured.levels[level].since;
  }
  write_down(*decision, measured);
  const std::lock_guard lock(mutex_);
  pace_ = decision->pace;
}

void Pacemaker::write_down(const policy::PaceDecision& decision,
                           const energy::MeasuredJob& measured) {
  engine::ScheduleLine line;
  line.incarnation = incarnation_;
  line.goal = context_.settings.auto_schedule;
  line.decision = &decision;
  for (std::size_t level = 1; level < line.checkpoints.size(); ++level) {
    line.checkpoints[level] = measured.levels[level].checkpoints;
    line.restarts[level] = measured.levels[level].restarts;
  }
  line.is_compute_power_measured = measured.compute_w.has_value();
  line.is_checkpoint_power_measured = measured.checkpoint_w.has_value();
  writer_.append_quietly(engine::schedule_line(line));
}

}  // namespace diapause::library
