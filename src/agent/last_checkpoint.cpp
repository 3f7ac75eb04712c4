#include "agent/last_checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "engine/job/allocation.hpp"
#include "process/freeze.hpp"
#include "process/proc.hpp"
#include "sys/process.hpp"

namespace diapause::agent {
namespace {

// Returns the number of KiB after a name in the text of /proc/<pid>/status, or 0.
std::uint64_t kibibytes_in(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  const std::size_t begin =
      at == std::string::npos ? at : text.find_first_of("0123456789", at + name.size());
  std::uint64_t found = 0;
  if (begin != std::string::npos)
    std::from_chars(text.data() + begin, text.data() + text.size(), found);
  return found;
}

}  // namespace

LastCheckpoint::LastCheckpoint(const JobStore& store)
    : store_(store), signals_(engine::stop_signals(store.context().settings.deadline)) {
  const auto left_s = engine::seconds_to_end(store.context().settings.deadline);
  if (!left_s) return;
  whole_s_ = *left_s;
  end_s_ = sys::monotonic_s() + *left_s;
}

std::optional<double> LastCheckpoint::due_in_s(std::uint64_t bytes) const {
  if (!end_s_) return std::nullopt;
  const auto levels = engine::expected_seconds(store_.context(), times_,
                                               bytes * store_.context().topology.node_names.size());
  return left_s(0) - store_.context().settings.deadline.margin_s - policy::lead_s(levels, whole_s_);
}

double LastCheckpoint::left_s(int signal) const {
  const double grace_s = store_.context().settings.deadline.grace_s;
  if (!end_s_) return grace_s;
  const double to_end_s = *end_s_ - sys::monotonic_s();
  return signal == 0 ? to_end_s : std::min(to_end_s, grace_s);
}

int LastCheckpoint::level(std::uint64_t bytes, double left_s) const {
  const auto levels = engine::expected_seconds(store_.context(), times_,
                                               bytes * store_.context().topology.node_names.size());
  return policy::deepest_in_time(levels, left_s - store_.context().settings.deadline.margin_s);
}

std::uint64_t memory_of_job(pid_t first) {
  std::uint64_t sum = 0;
  for (const pid_t one : process::processes_with(first).value_or(std::vector<pid_t>{})) {
    const auto text = process::read_proc(fmt::format("/proc/{}/status", one));
    if (!text) continue;  // it has ended
    sum += (kibibytes_in(*text, "RssAnon:") + kibibytes_in(*text, "RssShmem:")) * 1024;
  }
  return sum;
}

}  // namespace diapause::agent
