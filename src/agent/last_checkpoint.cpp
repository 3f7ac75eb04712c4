#include "agent/last_checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "engine/job/allocation.hpp"
#include "process/freeze.hpp"
#include "process/proc.hpp"
#include "sys/process.hpp"

namespace diapause::agent {
LastCheckpoint::LastCheckpoint(const JobStore& store)
    : store_(store), signals_(engine::stop_signals(store.context().settings.deadline)) {
  const auto left_s = engine::seconds_to_end(store.context().settings.deadline);
  if (!left_s) return;
  whole_s_ = *left_s;
  end_s_ = sys::monotonic_s() + *left_s;
}

policy::LevelSeconds LastCheckpoint::expected(std::uint64_t bytes) const {
  const std::size_t nodes = store_.context().topology.node_names.size();
  return engine::expected_seconds(store_.context(), times_, bytes * nodes);
}

std::optional<double> LastCheckpoint::due_in_s(pid_t first) const {
  if (!end_s_) return std::nullopt;
  return left_s(0) - store_.context().settings.deadline.margin_s -
         policy::lead_s(expected(memory_of_job(first)), whole_s_);
}

double LastCheckpoint::left_s(int signal) const {
  const double grace_s = store_.context().settings.deadline.grace_s;
  if (!end_s_) return grace_s;
  const double to_end_s = *end_s_ - sys::monotonic_s();
  return signal == 0 ? to_end_s : std::min(to_end_s, grace_s);
}

int LastCheckpoint::level(std::uint64_t bytes, double left_s) const {
  return policy::deepest_in_time(expected(bytes),
                                 left_s - store_.context().settings.deadline.margin_s);
}

std::uint64_t memory_of_job(pid_t first) {
  std::uint64_t sum = 0;
  for (const pid_t one : process::processes_with(first).value_or(std::vector<pid_t>{})) {
    const auto text = process::read_proc(fmt::format("/proc/{}/status", one));
    if (!text) continue;  // it has ended
    for (const char* const kind : {"RssAnon", "RssShmem"})
      sum += process::number_in(*text, kind, 10).value_or(0) * 1024;
  }
  return sum;
}

}  // namespace diapause::agent
