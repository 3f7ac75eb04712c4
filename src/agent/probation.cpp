#include "agent/probation.hpp"

#include <algorithm>

namespace diapause::agent {
namespace {

std::set<std::uint32_t> living_of(const process::Job& job) {
  std::set<std::uint32_t> living;
  for (const process::Process& one : job.processes) {
    if (!one.has_ended) living.insert(one.id);
  }
  return living;
}

}  // namespace

bool Probation::lacks_processes(const process::Job& job) const {
  const bool has_killed = std::ranges::any_of(job.processes, [](const process::Process& one) {
    constexpr std::uint32_t kSignal = 0x7f;  // part of the status, as wait() gives it
    return one.has_ended && (one.exit_status & kSignal) != 0;
  });
  return has_killed || !std::ranges::includes(living_of(job), living_);
}

void Probation::restored(const process::Job& job, double now_s) { stored(job, true, now_s); }

void Probation::stored(const process::Job& job, bool doubtful, double now_s) {
  living_ = living_of(job);
  is_doubtful_ = doubtful;
  since_s_ = now_s;
}

std::optional<double> Probation::fails(double now_s) const {
  if (!is_doubtful(now_s)) return std::nullopt;
  return now_s - since_s_;
}

}  // namespace diapause::agent
