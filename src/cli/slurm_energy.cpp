#include "cli/slurm_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <vector>

#include "sys/command.hpp"

namespace diapause::cli {
namespace {

// A number of 64 bits without any is what Slurm prints for an energy that it does not know.
constexpr double kMost = 1e18;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= kMost)) return std::nullopt;  // or not finite
  return value;
}

std::string_view cut_to(std::string_view& text, char end) {
  const std::string_view first = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return first;
}

// A job, or a part of a heterogeneous one.
struct SlurmPart {
  double joules = 0, of_steps_j = 0, seconds = 0;
};

// By the job that was asked for, then by the raw id of the part.
using SlurmParts = std::map<std::string, std::map<std::string, SlurmPart>>;

void take_line(std::string_view line, const std::set<std::string>& jobs, SlurmParts& parts) {
  const std::string_view id = cut_to(line, '|');
  std::string_view step = cut_to(line, '|');
  const std::string raw(cut_to(step, '.'));
  const auto joules = number_in(cut_to(line, '|'));
  const auto seconds = number_in(cut_to(line, '|'));
  // "77+1" is a part of job 77 with a raw id of its own.
  const std::size_t plus = id.find('+');
  const std::string job = plus == std::string_view::npos ? raw : std::string(id.substr(0, plus));
  if (raw.empty() || !(jobs.contains(job) || jobs.contains(raw))) return;
  SlurmPart& part = parts[job][raw];
  if (step.empty()) {
    part.joules += joules.value_or(0);
    part.seconds = std::max(part.seconds, seconds.value_or(0));
  } else if (number_in(step)) {
    part.of_steps_j += joules.value_or(0);
  }
}

bool is_job_id(const std::string& id) {
  return !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::optional<SlurmEnergy> parse_sacct(std::string_view answer, const std::set<std::string>& jobs) {
  SlurmParts parts;
  while (!answer.empty()) take_line(cut_to(answer, '\n'), jobs, parts);
  SlurmEnergy sum;
  for (const auto& [job, of_job] : parts) {
    double joules = 0, seconds = 0;
    for (const auto& [raw, part] : of_job) {
      joules += part.joules > 0 ? part.joules : part.of_steps_j;
      seconds = std::max(seconds, part.seconds);
    }
    if (!(joules > 0)) continue;
    sum.jobs.insert(job);
    sum.joules += joules;
    sum.seconds += seconds;
  }
  return sum.jobs.empty() ? std::nullopt : std::optional(sum);
}

std::optional<SlurmEnergy> ask_sacct(const std::set<std::string>& jobs) {
  std::vector<std::string> known;
  std::ranges::copy_if(jobs, std::back_inserter(known), is_job_id);
  if (known.empty()) return std::nullopt;
  const auto answer = sys::output_of(
      {"timeout", "20", "sacct", "--jobs", fmt::format("{}", fmt::join(known, ",")), "--noheader",
       "--parsable2", "--format", "JobID,JobIDRaw,ConsumedEnergyRaw,ElapsedRaw"});
  return answer ? parse_sacct(*answer, jobs) : std::nullopt;
}

}  // namespace diapause::cli
