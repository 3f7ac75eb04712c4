#include "model/one_level.hpp"

#include <cmath>

#include "model/lambert.hpp"

namespace diapause::model {

Times expected_times(const OneLevel& job, double work_s) {
  const double rate = 1 / job.mtbf_s;
  const double failures = std::expm1(rate * (work_s + job.checkpoint_s));
  Times times;
  times.computing_s = std::exp(rate * job.checkpoint_s) * std::expm1(rate * work_s) / rate;
  times.checkpointing_s = std::expm1(rate * job.checkpoint_s) / rate;
  times.restarting_s = failures * std::expm1(rate * job.restart_s) / rate;
  times.down_s = failures * std::exp(rate * job.restart_s) * job.downtime_s;
  return times;
}

double time_optimal_work_s(const OneLevel& job) {
  return job.mtbf_s * one_plus_lambert_w0(-std::expm1(-job.checkpoint_s / job.mtbf_s));
}

double energy_optimal_work_s(const OneLevel& job, const Powers& powers) {
  const double rate = 1 / job.mtbf_s;
  const double in_checkpoint = std::expm1(rate * job.checkpoint_s);
  const double grows = 1 + in_checkpoint;
  const double recovery_j = powers.restart_w * std::expm1(rate * job.restart_s) / rate +
                            powers.idle_w * std::exp(rate * job.restart_s) * job.downtime_s;
  const double a = grows * (powers.compute_w / rate + recovery_j);
  // A - B, computed without the cancellation of nearly equal terms.
  const double a_less_b = in_checkpoint * (recovery_j + powers.checkpoint_w / rate);
  return job.mtbf_s * one_plus_lambert_w0(a_less_b / a);
}

double young_work_s(const OneLevel& job) { return std::sqrt(2 * job.checkpoint_s * job.mtbf_s); }

double daly_work_s(const OneLevel& job) {
  if (job.checkpoint_s >= 2 * job.mtbf_s) return job.mtbf_s;
  const double half = job.checkpoint_s / (2 * job.mtbf_s);
  return young_work_s(job) * (1 + std::sqrt(half) / 3 + half / 9) - job.checkpoint_s;
}

double time_excess(const OneLevel& job, double work_s) {
  const double best_s = time_optimal_work_s(job);
  const double best = expected_times(job, best_s).wall_s() / best_s;
  return expected_times(job, work_s).wall_s() / work_s / best - 1;
}

}  // namespace diapause::model
