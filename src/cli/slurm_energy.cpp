#include "cli/slurm_energy.hpp"

#include <algorithm>
#include <charconv>

#include "sys/command.hpp"

namespace diapause::cli {
namespace {

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view cut_to(std::string_view& text, char end) {
  const std::string_view first = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return first;
}

}  // namespace

std::optional<SlurmEnergy> parse_sacct(std::string_view answer) {
  // A number of 64 bits without any is what Slurm prints for an energy that it does not know.
  constexpr double kMostJ = 1e18;
  SlurmEnergy job, steps;
  while (!answer.empty()) {
    std::string_view line = cut_to(answer, '\n');
    const std::string_view id = cut_to(line, '|');
    const auto joules = number_in(cut_to(line, '|'));
    const auto seconds = number_in(cut_to(line, '|'));
    const std::size_t dot = id.find('.');
    const bool is_job = dot == std::string_view::npos;
    if (is_job && seconds) job.seconds = *seconds;
    if (is_job && !id.empty()) job.jobs.emplace(id);
    if (!joules || !(*joules > 0) || *joules > kMostJ) continue;
    if (is_job) job.joules += *joules;
    if (!is_job && number_in(id.substr(dot + 1))) steps.joules += *joules;
  }
  if (job.joules <= 0) job.joules = steps.joules;
  return job.joules > 0 && !job.jobs.empty() ? std::optional(job) : std::nullopt;
}

std::optional<SlurmEnergy> ask_sacct(const std::set<std::string>& jobs) {
  SlurmEnergy sum;
  for (const std::string& job : jobs) {
    const auto answer =
        sys::output_of({"timeout", "20", "sacct", "--jobs", job, "--noheader", "--parsable2",
                        "--format", "JobIDRaw,ConsumedEnergyRaw,ElapsedRaw"});
    const auto one = answer ? parse_sacct(*answer) : std::nullopt;
    if (!one) continue;
    sum.jobs.insert(one->jobs.begin(), one->jobs.end());
    sum.joules += one->joules;
    sum.seconds += one->seconds;
  }
  return sum.jobs.empty() ? std::nullopt : std::optional(sum);
}

}  // namespace diapause::cli
