// Measures the time of a plan, a prediction and a simulation, as pairs of milliseconds or seconds,
// and 1.
//
//   model plan|predict|million RUNS
//
// `plan` finds the shortest, the cheapest and the mixed schedule of a job with five levels, in
// milliseconds. `predict` predicts one row of a published table and reads the profile for it, in
// milliseconds. `million` simulates a year of a job on a million nodes, of which a few hundred
// thousand fail, on one core, in seconds.
#include <cstdlib>

#include "energy/predict.hpp"
#include "energy/profile.hpp"
#include "measure.hpp"
#include "model/optimum.hpp"
#include "simulate/simulation.hpp"

namespace {

using namespace diapause;

const std::vector<model::Level> kFive = {{1, 2, 0, 0, 3, 1, 1 / 5000.},
                                         {2, 3, 20, 0.05, 8, 10, 1 / 20000.},
                                         {3, 4, 40, 0.05, 20, 10, 1 / 90000.},
                                         {4, 5, 600, 0.05, 600, 60, 1 / 400000.},
                                         {5, 5, 6000, 0.05, 6000, 600, 1 / 8000000.}};
const model::Powers kPowers = {300, 120, 150, 100, 20};

double plan_ms() {
  return 1e3 * bench::seconds_of([] {
           if (!model::best_plans(kFive, kPowers, 0.0001)) bench::give_up("no plan");
         });
}

double predict_ms() {
  const std::string machine = "theta-xc40";
  return 1e3 * bench::seconds_of([&] {
           const auto costs =
               energy::parse_app_costs(energy::built_in_profile(machine), machine, "heat");
           const auto schedule = energy::parse_minute_schedule("ckp(3,5,7,11)");
           if (!costs || !schedule) bench::give_up("no prediction");
           if (!energy::predict_run(*costs, *schedule, costs->bytes)) bench::give_up("no run");
         });
}

double million_s(std::uint64_t seed) {
  constexpr double kYear_s = 31557600;
  constexpr std::uint32_t kNodes = 1'000'000;
  simulate::Job job;
  job.levels = {{2, 2, 2, 0.05, 2, 5, kNodes / (10 * kYear_s)},
                {4, 2, 600, 0.05, 600, 60, 12 / kYear_s}};
  job.pattern = model::best_plan(job.levels, kPowers, model::Goal::time)->pattern;
  job.horizon_s = kYear_s;
  simulate::Machine machine;
  machine.placement.nodes = kNodes;
  machine.classes = {{"node",
                      simulate::Takes::nodes,
                      1,
                      {model::LawKind::weibull, 10 * kYear_s, 0.8},
                      0,
                      1,
                      86400,
                      0},
                     {"system",
                      simulate::Takes::all_nodes,
                      kNodes,
                      {model::LawKind::exponential, kYear_s / 12, 1},
                      0,
                      1,
                      0,
                      0}};
  if (!simulate::check(job, machine)) bench::give_up("nothing to play");
  return bench::seconds_of([&] {
    if (!(simulate::simulate(job, machine, seed).work_s > 0)) bench::give_up("no work was done");
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::give_up("usage: model plan|predict|million RUNS");
  const std::string what = argv[1];
  bench::Pairs pairs;
  for (int run = 0; run < std::atoi(argv[2]); ++run) {
    const auto seed = static_cast<std::uint64_t>(run) + 1;
    pairs.emplace_back(what == "plan"      ? plan_ms()
                       : what == "predict" ? predict_ms()
                                           : million_s(seed),
                       1.0);
  }
  bench::print_json(pairs);
}
