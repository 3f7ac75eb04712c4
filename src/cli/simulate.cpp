// `diapause simulate`: simulates many runs of a job with failures.
#include <fmt/core.h>

#include "cli/outputs.hpp"
#include "cli/python.hpp"
#include "cli/runs_progress.hpp"
#include "cli/simulation_report.hpp"
#include "cli/verbs.hpp"
#include "simulate/simulation.hpp"
#include "sys/text_file.hpp"
#include "sys/thread.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::cli {
namespace {

constexpr std::size_t kMostEvents = 1'000'000;

std::vector<simulate::History> play(const SimulateArguments& arguments,
                                    const SimulationSetup& setup) {
  std::vector<simulate::History> histories(arguments.replicas);
  const bool keeps = !arguments.events.empty() || !arguments.plot.empty();
  sys::ThreadPool pool(arguments.threads > 0 ? arguments.threads : sys::usable_cores());
  RunsProgress progress(arguments.replicas);
  pool.run(arguments.replicas, [&](std::uint64_t i) {
    const std::size_t most_events = keeps && i == 0 ? kMostEvents : 0;
    histories[i] = simulate::simulate(setup.job, setup.machine, arguments.seed + i, most_events);
    progress.one_more();
  });
  return histories;
}

Status check_outputs(const SimulateArguments& arguments) {
  DIAPAUSE_TRY(check_output("--events", arguments.events));
  return check_picture("--plot", arguments.plot);
}

int write_and_draw(const SimulateArguments& arguments, const simulate::History& first) {
  sys::Kernel& kernel = sys::real_kernel();
  if (!arguments.events.empty()) {
    const Status written =
        sys::replace_text_file(kernel, arguments.events, events_file(first, arguments.events));
    if (!written) return complain(written.error());
  }
  if (arguments.plot.empty()) return kDone;
  const std::string numbers = numbers_of_picture(arguments.plot);
  const Status written = sys::replace_text_file(kernel, numbers, events_file(first, numbers));
  if (!written) return complain(written.error());
  std::fflush(stdout);
  return become_python({"simulation", "--output=" + arguments.plot, "--", numbers});
}

}  // namespace

int simulate_job(const SimulateArguments& arguments) {
  if (const Status can_be = check_outputs(arguments); !can_be) return complain(can_be.error());
  const auto model = load_job_model(arguments.job);
  if (!model) return complain(model.error());
  const auto trace = read_failure_trace(arguments.trace);
  if (!trace) return complain(trace.error());
  const auto setup = simulation_setup(arguments, *model, *trace);
  if (!setup) return complain(setup.error());
  const std::vector<simulate::History> histories = play(arguments, *setup);
  if (arguments.json) {
    fmt::print("{}\n", simulation_json(*setup, histories));
  } else {
    fmt::print("{}", simulation_text(*setup, histories));
  }
  return write_and_draw(arguments, histories.front());
}

}  // namespace diapause::cli
