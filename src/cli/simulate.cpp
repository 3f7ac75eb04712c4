// `diapause simulate`: plays a job among failures, many times.
#include <fmt/core.h>

#include <atomic>
#include <mutex>

#include "cli/python.hpp"
#include "cli/simulation_report.hpp"
#include "cli/verbs.hpp"
#include "simulate/simulation.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"
#include "sys/thread.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::cli {
namespace {

constexpr std::size_t kMostEvents = 1'000'000;

Result<std::optional<simulate::FailureTrace>> read_trace(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::string text;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  DIAPAUSE_TRY(sys::read_lines(sys::real_kernel(), path, [&](std::string_view line) {
    if (text.size() < kMostBytes) text.append(line).push_back('\n');
  }));
  if (text.size() >= kMostBytes) return fail(Code::argument, path + " has more than 1 GiB");
  DIAPAUSE_TRY_ASSIGN(auto trace, simulate::parse_failure_trace(text, path));
  return std::optional(std::move(trace));
}

// A line on standard error that is written over, where that is a terminal.
class Progress {
 public:
  explicit Progress(std::uint64_t all) : all_(all), shows_(sys::is_terminal(stderr)) {}
  ~Progress() {
    if (shows_) fmt::print(stderr, "\r{:60}\r", "");
  }
  void one_more() {
    const std::uint64_t done = ++done_;
    if (!shows_) return;
    const std::lock_guard lock(mutex_);
    const auto filled = static_cast<std::size_t>(40 * done / all_);
    fmt::print(stderr, "\r[{:40}] {} of {} runs", std::string(filled, '#'), done, all_);
    std::fflush(stderr);
  }

 private:
  const std::uint64_t all_;
  const bool shows_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
};

std::vector<simulate::History> play(const SimulateArguments& arguments, const SimulationSetup& setup) {
  std::vector<simulate::History> histories(arguments.replicas);
  const bool keeps = !arguments.events.empty() || !arguments.plot.empty();
  sys::ThreadPool pool(arguments.threads > 0 ? arguments.threads : sys::usable_cores());
  Progress progress(arguments.replicas);
  pool.run(arguments.replicas, [&](std::uint64_t i) {
    const std::size_t most_events = keeps && i == 0 ? kMostEvents : 0;
    histories[i] = simulate::simulate(setup.job, setup.machine, arguments.seed + i, most_events);
    progress.one_more();
  });
  return histories;
}

int write_and_draw(const SimulateArguments& arguments, const simulate::History& first) {
  sys::Kernel& kernel = sys::real_kernel();
  if (!arguments.events.empty()) {
    const Status written = sys::replace_text_file(kernel, arguments.events, events_file(first, arguments.events));
    if (!written) return complain(written.error());
  }
  if (arguments.plot.empty()) return kDone;
  const std::string numbers = arguments.plot + ".json";
  const Status written = sys::replace_text_file(kernel, numbers, events_file(first, numbers));
  if (!written) return complain(written.error());
  std::fflush(stdout);
  return become_python({"simulation", "--output=" + arguments.plot, "--", numbers});
}

}  // namespace

int simulate_job(const SimulateArguments& arguments) {
  const auto model = load_job_model(arguments.job);
  if (!model) return complain(model.error());
  const auto trace = read_trace(arguments.trace);
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
