// Checkpoints of one level and memoryless failures (exponential times between them), all in closed
// form.
//
// A program works for w seconds, is then blocked for a checkpoint of C seconds, and so on. Failures
// come at rate L = 1 / mtbf, during work, checkpoints and restarts. After a failure, nothing
// happens for D seconds (no failure either), then a restart takes R seconds, and the work since the
// last checkpoint is repeated. Per w seconds of useful work the program spends, in expectation,
//
//   computing      e^(L C) (e^(L w) - 1) / L
//   checkpointing  (e^(L C) - 1) / L
//   restarting     (e^(L (w + C)) - 1) (e^(L R) - 1) / L
//   down           (e^(L (w + C)) - 1) e^(L R) D
//
// The sum is (1/L + D) e^(L R) (e^(L (w + C)) - 1): Bougeret, Casanova, Rabie, Robert, Vivien,
// "Checkpointing strategies for parallel jobs" (SC 2011), and with D = 0 Daly, "A higher order
// estimate of the optimum checkpoint interval for restart dumps" (2006), equation 13. The parts
// follow in the same way: the number of attempts is geometric, and an attempt computes for min(X,
// w) seconds, where X is the time to the failure.
#pragma once

#include "model/levels.hpp"

namespace diapause::model {

// The parameters of a job with checkpoints of one level, in seconds. None is negative, and mtbf_s
// is above 0.
struct OneLevel {
  double mtbf_s = 0;  // for all nodes that the job needs together
  double checkpoint_s = 0;
  double restart_s = 0;
  double downtime_s = 0;
};

// Returns the expected seconds by activity per `work_s` seconds of useful work between two
// checkpoints.
Times expected_times(const OneLevel& job, double work_s);

// Returns the work between checkpoints, in seconds, that minimizes the time of the run: (1 +
// W0(-e^(-L C - 1))) / L. It depends neither on the restart nor on the downtime. It is 0 if a
// checkpoint costs nothing.
double time_optimal_work_s(const OneLevel& job);

// Returns the work between checkpoints, in seconds, that minimizes the energy. With the
// expectations above, the energy per segment is A e^(L w) - B, where
//
//   K = P_restart (e^(L R) - 1) / L + P_idle e^(L R) D
//   A = e^(L C) (P_compute / L + K)
//   B = e^(L C) P_compute / L - P_checkpoint (e^(L C) - 1) / L + K
//
// and its minimum per work is at (1 + W0(-B / (e A))) / L. Equal powers give the time-optimal
// interval.
double energy_optimal_work_s(const OneLevel& job, const Powers& powers);

// Returns sqrt(2 C mtbf). Young, "A first order approximation to the optimum checkpoint interval"
// (1974).
double young_work_s(const OneLevel& job);

// Returns sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C for C < 2M, else M. Daly (2006),
// equation 37.
double daly_work_s(const OneLevel& job);

// Returns how much longer than the shortest a run with that much work between checkpoints takes:
// 0.01 is one percent.
double time_excess(const OneLevel& job, double work_s);

}  // namespace diapause::model
