#include "cli/energy_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace diapause::cli {
namespace {

// This is Student's t, two-sided 95 %, by degrees of freedom from 1. For more of them it is that of
// the normal distribution or a little more.
constexpr double kStudent[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
constexpr double kStudentOfMany = 2.2;

using Value = std::optional<double> (*)(const EnergySummary&);

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns how far one more run may be off the mean of these, over the mean; nullopt if there is
// only one.
std::optional<double> scatter_of(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const std::size_t freedom = values.size() - 1;
  const double student = freedom <= std::size(kStudent) ? kStudent[freedom - 1] : kStudentOfMany;
  return student * std::sqrt(squares / static_cast<double>(freedom) * (1 + 1 / count)) / mean;
}

// Returns nullopt if any of them has no value.
std::optional<std::vector<double>> values_of(std::span<const EnergySummary> baselines,
                                             Value value) {
  std::vector<double> values;
  for (const EnergySummary& one : baselines) {
    const auto found = value(one);
    if (!found) return std::nullopt;
    values.push_back(*found);
  }
  return values;
}

bool share_sources(const EnergySummary& one, const EnergySummary& other) {
  const auto names = [](const EnergySummary& energy) {
    std::set<std::pair<std::string, std::string>> found;
    for (const EnergySource& source : energy.sources) {
      if (energy.is_of_total(source)) found.emplace(source.domain, source.source);
    }
    return found;
  };
  return one.total == other.total && one.kind() == other.kind() && names(one) == names(other);
}

struct MeterError {
  double sampling = 0, sensor = 0;  // shares of the energy
};

// Returns nullopt if the error is not told of all the energy, or nobody knows it.
std::optional<MeterError> error_of(const EnergySummary& energy, bool needs_sensor) {
  const Joules& whole = energy.whole;
  if (whole.known == 0 || whole.doubted < whole.known || !(whole.sum > 0)) return std::nullopt;
  if (needs_sensor && whole.is_estimate()) return std::nullopt;
  return MeterError{whole.sampling / whole.sum, needs_sensor ? whole.sensor / whole.sum : 0};
}

// Returns the error of the quotient of the job and the mean of the baselines, as a share.
std::optional<MeterError> meter_error(const EnergySummary& job,
                                      std::span<const EnergySummary> baselines) {
  const bool is_same = std::ranges::all_of(baselines, [&](const EnergySummary& one) {
    return share_machines(job, one) && share_sources(job, one);
  });
  auto sum = error_of(job, !is_same);
  MeterError worst;
  for (const EnergySummary& one : baselines) {
    const auto error = error_of(one, !is_same);
    if (!sum || !error) return std::nullopt;
    worst = {std::max(worst.sampling, error->sampling), std::max(worst.sensor, error->sensor)};
  }
  sum->sampling += worst.sampling;
  sum->sensor += worst.sensor;
  return sum;
}

// The scatter of runs contains the errors of sampling as well.
std::optional<double> off_of(const std::optional<double>& scatter,
                             const std::optional<MeterError>& meter) {
  if (!meter) return std::nullopt;
  return std::max(scatter.value_or(0), meter->sampling) + meter->sensor;
}

std::optional<Change> change_of(std::optional<double> value, double baseline,
                                std::optional<double> off_share) {
  const auto percent = percent_more(value, baseline);
  if (!percent) return std::nullopt;
  Change change{*percent, std::nullopt};
  if (off_share) change.off = *off_share * std::abs(*value / baseline) * 100;
  return change;
}

// Returns how much the energy of the time of which no source tells may add, as a share: up to twice
// as much as the mean power of the other time.
double missing_share(const EnergySummary& energy) {
  if (!(energy.gap_s > 0)) return 0;
  return energy.covered_s > 0 ? 2 * energy.gap_s / energy.covered_s : 1;
}

// Returns nullopt if energy is missing and nobody knows how far the rest may be off.
std::optional<Change> change_of_joules(const EnergySummary& job,
                                       std::span<const EnergySummary> baselines, double baseline,
                                       std::optional<double> off_share) {
  double missing = 0;
  for (const EnergySummary& one : baselines) missing = std::max(missing, missing_share(one));
  missing += missing_share(job);
  if (!off_share && missing > 0) return std::nullopt;
  if (off_share) *off_share += missing;
  return change_of(job.whole.complete(), baseline, off_share);
}

std::optional<double> complete_watts(const EnergySummary& energy) {
  return energy.whole.complete() ? energy.watts() : std::nullopt;
}

}  // namespace

bool share_machines(const EnergySummary& one, const EnergySummary& other) {
  return one.hosts.size() == 1 && one.hosts == other.hosts && !one.hosts.contains("");
}

std::optional<bool> Change::is_told_apart() const {
  return off ? std::optional(std::abs(percent) > *off) : std::nullopt;
}

Comparison compare(const EnergySummary& job, std::span<const EnergySummary> baselines) {
  Comparison all;
  const auto meter = meter_error(job, baselines);
  const auto seconds =
      values_of(baselines, [](const EnergySummary& one) { return std::optional(one.seconds); });
  all.seconds = mean_of(*seconds);
  all.runtime_change = change_of(job.seconds, all.seconds, scatter_of(*seconds));
  if (const auto watts = values_of(baselines, complete_watts)) {
    all.watts = mean_of(*watts);
    all.watts_change =
        change_of(complete_watts(job), *all.watts, off_of(scatter_of(*watts), meter));
  }
  if (const auto joules =
          values_of(baselines, [](const EnergySummary& one) { return one.whole.complete(); })) {
    all.joules = mean_of(*joules);
    all.joules_change =
        change_of_joules(job, baselines, *all.joules, off_of(scatter_of(*joules), meter));
  }
  return all;
}

}  // namespace diapause::cli
