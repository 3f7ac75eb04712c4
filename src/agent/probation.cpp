#include "agent/probation.hpp"

#include <sys/wait.h>

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
    return one.has_ended && WIFSIGNALED(static_cast<int>(one.exit_status));
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
