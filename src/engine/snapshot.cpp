// Calls made in every iteration: is a checkpoint due, is a bit flip due.
#include <fmt/core.h>

#include <cstring>

#include "engine/engine.hpp"
#include "engine/ledger_lines.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

// splitmix64: a step of a generator good enough to choose which bit to break.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Status Engine::snapshot(std::uint64_t version, CheckpointInfo& info) {
  info = {};
  info.version = version;
  if (off_ || host_->other_rank_count() != 0) return usable();
  if (context_->settings.flips.bit) inject_due_flips();
  int level = 0;
  if (schedule_.tick()) {
    double now_s = sys::monotonic_s() - opened_s_;
    DIAPAUSE_TRY(context_->comm->broadcast(std::as_writable_bytes(std::span(&now_s, 1)), 0));
    level = schedule_.decide(now_s);
    DIAPAUSE_TRY_ASSIGN(level, deadline_.level_now(*context_, schedule_.until_next_s(), protected_bytes(), level));
  } else {
    level = schedule_.calls_due();
  }
  if (level == 0) {
    catch_up();
    report_background(info);
    return {};
  }
  Status result = checkpoint(version, deepest_possible(level), info);
  if (deadline_.is_last() && host_->is_background() && info.taken) {
    // The program is about to be told to stop: what it is told must hold.
    finish_flights();
    info.level_reached = taken_.back().progress.deepest_level();
    if (result) result = taken_.back().progress.result;
  }
  const std::optional<Stop> stop = deadline_.note_checkpoint(*context_, version, info.level_reached);
  if (stop && bill_.is_open()) {
    bill_.append(*context_, stop_line({host_->incarnation(), in_words(*stop), version, info.level_reached}));
  }
  return result;
}

std::uint64_t Engine::protected_bytes() const {
  std::uint64_t bytes = 0;
  for (const ProtectedRegion& region : regions_) bytes += region.description.stored_bytes;
  return bytes;
}

// A schedule may name levels that the job has too few nodes for, as the default one does on a single node: level 1 is
// taken instead, and it is said once.
int Engine::deepest_possible(int level) {
  const std::size_t nodes = context_->topology.node_names.size();
  const std::size_t needed = nodes_needed(context_->settings, level);
  if (nodes >= needed) return level;
  if (!told_too_few_nodes_ && context_->rank() == 0) {
    context_->log(
        Severity::information,
        fmt::format("level {} needs {} nodes and there are {}: level 1 is taken when it is due", level, needed, nodes));
  }
  told_too_few_nodes_ = true;
  return 1;
}

void Engine::inject_due_flips() {
  const config::FlipSettings& flips = context_->settings.flips;
  const double now_s = sys::monotonic_s() - opened_s_;
  if (now_s - last_flip_s_ < flips.every_s) return;
  last_flip_s_ = now_s;
  std::vector<const ProtectedRegion*> targets;
  for (const ProtectedRegion& region : regions_) {
    const format::Region& r = region.description;
    const bool chosen = flips.region.empty() || flips.region == r.name;
    if (chosen && r.count > 0 && *flips.bit < 8 * r.element_bytes) targets.push_back(&region);
  }
  for (std::uint32_t i = 0; i < flips.count && !targets.empty(); ++i) {
    if (flips.limit != 0 && flips_done_ >= flips.limit) return;
    const format::Region& region = targets[next_random(flip_random_) % targets.size()]->description;
    const std::uint64_t element = next_random(flip_random_) % region.count;
    if (!inject_bit_flip(region.name, element, *flips.bit)) return;
    ++flips_done_;
    context_->log(Severity::information,
                  fmt::format("flipped bit {} of element {} of '{}'", *flips.bit, element, region.name));
  }
}

Status Engine::inject_bit_flip(const std::string& name, std::uint64_t element, std::uint32_t bit) {
  DIAPAUSE_TRY_ASSIGN(ProtectedRegion * region, protected_region(name));
  const format::Region& r = region->description;
  if (element >= r.count || bit >= 8 * r.element_bytes) {
    return fail(Code::argument, fmt::format("bit {} of element {} is outside region '{}' of {} elements of {} bytes",
                                            bit, element, name, r.count, r.element_bytes));
  }
  region->data[element * r.element_bytes + bit / 8] ^= std::byte{1} << (bit % 8);
  return {};
}

}  // namespace diapause::engine
