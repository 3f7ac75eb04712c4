// `diapause run`: starts a command, and starts it again when it fails.
#include <fmt/format.h>

#include "cli/verbs.hpp"
#include "sys/process.hpp"
#include "sys/supervisor.hpp"

namespace diapause::cli {
namespace {

constexpr double kGrace_s = 5;  // between SIGTERM and SIGKILL for what the command left behind

std::string in_words(const sys::ProcessExit& exit) {
  if (!exit.by_signal) return fmt::format("ended with status {}", exit.value);
  return fmt::format("was ended by {}", sys::signal_name(exit.value));
}

class Run {
 public:
  Run(const RunArguments& arguments, sys::Supervisor& supervisor) : arguments_(arguments), supervisor_(supervisor) {}

  int all_attempts() {
    for (std::uint64_t attempt = 0;; ++attempt) {
      const double start_s = sys::monotonic_s();
      const Status started = supervisor_.start(arguments_.command, {"DIAPAUSE_RUN_ATTEMPT", std::to_string(attempt)});
      if (!started) {
        note(started.error().message);
        return kCannotRun;
      }
      const sys::ProcessExit exit = wait_for_exit();
      const double uptime_s = sys::monotonic_s() - start_s;
      if (supervisor_.end_leftovers(kGrace_s)) note("ended processes that the command had left behind");
      if (exit.succeeded() || !goes_on(exit, attempt, uptime_s)) return exit.shell_status();
    }
  }

 private:
  static void note(const std::string& text) { fmt::print(stderr, "diapause run: {}\n", text); }

  // Hands signals on until the command is over.
  sys::ProcessExit wait_for_exit() {
    for (;;) {
      const auto signal = supervisor_.wait(std::nullopt);
      if (!signal) continue;
      if (signal->meaning == sys::SignalMeaning::child_ended) {
        if (const auto exit = supervisor_.bury()) return *exit;
        continue;
      }
      obey(*signal);
    }
  }

  void obey(const sys::ReceivedSignal& signal) {
    supervisor_.signal_group(signal.number);
    if (signal.meaning == sys::SignalMeaning::stop) sys::Supervisor::stop_self();
    if (signal.meaning != sys::SignalMeaning::end) return;
    end_wanted_ = true;
    note(fmt::format("passed {} on; the command will not be started again", sys::signal_name(signal.number)));
  }

  // Whether to start again, after the pause; says so either way.
  bool goes_on(const sys::ProcessExit& exit, std::uint64_t attempt, double uptime_s) {
    const std::string what = fmt::format("start {} {} after {:.1f} s", attempt + 1, in_words(exit), uptime_s);
    if (end_wanted_) {
      note(what);
      return false;
    }
    if (attempt >= arguments_.restarts) {
      note(fmt::format("{}; giving up: {} restart{} allowed", what, arguments_.restarts,
                       arguments_.restarts == 1 ? " is" : "s are"));
      return false;
    }
    if (uptime_s < arguments_.min_uptime_s) {
      note(fmt::format("{}; giving up: it ran for less than {} s", what, arguments_.min_uptime_s));
      return false;
    }
    note(arguments_.delay_s > 0 ? fmt::format("{}; starting again in {} s", what, arguments_.delay_s)
                                : fmt::format("{}; starting again", what));
    pause();
    return !end_wanted_;
  }

  void pause() {
    const double until_s = sys::monotonic_s() + arguments_.delay_s;
    do {  // also without a delay: a signal that came meanwhile counts
      const double left_s = until_s - sys::monotonic_s();
      const auto signal = supervisor_.wait(left_s > 0 ? left_s : 0);
      if (signal && signal->meaning == sys::SignalMeaning::child_ended) supervisor_.bury();
      if (signal && signal->meaning != sys::SignalMeaning::child_ended) obey(*signal);
    } while (!end_wanted_ && sys::monotonic_s() < until_s);
  }

  const RunArguments& arguments_;
  sys::Supervisor& supervisor_;
  bool end_wanted_ = false;
};

}  // namespace

int run(const RunArguments& arguments) {
  auto supervisor = sys::Supervisor::create();
  if (!supervisor) {
    fmt::print(stderr, "diapause run: {}\n", supervisor.error().message);
    return kCannotRun;
  }
  return Run(arguments, *supervisor).all_attempts();
}

}  // namespace diapause::cli
