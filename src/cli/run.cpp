// `diapause run`: starts a command, and restarts it when it fails. When the command has stopped in
// time, asks Slurm to queue the job again.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/collection.hpp"
#include "cli/finish.hpp"
#include "cli/verbs.hpp"
#include "cli/vigil.hpp"
#include "sys/command.hpp"
#include "sys/path.hpp"
#include "sys/process.hpp"
#include "sys/signals.hpp"
#include "sys/supervisor.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

// Consecutive starts that fail because the system lacks some resource.
constexpr int kMostAgain = 20;
constexpr double kLongestAgain_s = 60;
// Seconds between SIGTERM and SIGKILL for processes that the command left behind.
constexpr double kGrace_s = 5;

std::string in_words(const sys::ProcessExit& exit) {
  if (!exit.by_signal) return fmt::format("ended with status {}", exit.value);
  return fmt::format("was ended by {}", sys::signal_name(exit.value));
}

std::string variable(const char* name) {
  const auto environment = sys::environment();
  const auto found =
      std::ranges::find_if(environment, [&](const auto& entry) { return entry.first == name; });
  return found == environment.end() ? "" : found->second;
}

// Returns the variable that tells the command when the allocation ends, because Slurm before 23.11
// does not set it.
std::vector<sys::Supervisor::Variable> end_of_allocation(const std::string& slurm_job) {
  constexpr const char* kName = "SLURM_JOB_END_TIME";
  if (slurm_job.empty() || !variable(kName).empty()) return {};
  const auto answer = sys::output_of({"timeout", "20", "env", "SLURM_TIME_FORMAT=%s", "squeue",
                                      "--noheader", "--jobs", slurm_job, "--format", "%e"});
  if (!answer) return {};
  const std::string seconds = answer->substr(0, answer->find_first_not_of("0123456789"));
  if (seconds.empty()) return {};  // there is no limit
  return {{kName, seconds}};
}

class Run {
 public:
  Run(const RunArguments& arguments, sys::Supervisor& supervisor, const std::string& directory)
      : arguments_(arguments),
        supervisor_(supervisor),
        slurm_job_(variable("SLURM_JOB_ID")),
        stop_file_(
            fmt::format("{}/.diapause-stop-{}-{}", directory, sys::host_name(), sys::process_id())),
        again_file_(fmt::format("{}/.diapause-again-{}-{}", directory, sys::host_name(),
                                sys::process_id())) {}

  int all_attempts() {
    const auto allocation = end_of_allocation(slurm_job_);
    (void)sys::remove_file(sys::real_kernel(), jobs_file());
    std::uint64_t failures = 0;
    for (std::uint64_t attempt = 0;; ++attempt) {
      (void)sys::remove_file(sys::real_kernel(), stop_file_);
      // Without the file nobody asks for another start.
      (void)sys::replace_text_file(sys::real_kernel(), again_file_, "");
      const double start_s = sys::monotonic_s();
      auto variables = allocation;
      variables.push_back({"DIAPAUSE_RUN_ATTEMPT", std::to_string(attempt)});
      variables.push_back({"DIAPAUSE_RUN_STOP_FILE", stop_file_});
      if (arguments_.finish) variables.push_back({"DIAPAUSE_RUN_JOBS_FILE", jobs_file()});
      variables.push_back({"DIAPAUSE_RUN_AGAIN_FILE", again_file_});
      const Status started = supervisor_.start(arguments_.command, variables);
      if (!started) {
        (void)sys::remove_file(sys::real_kernel(), again_file_);
        note(started.error().message);
        return kCannotRun;
      }
      // PBS starts processes on other machines that are not our children, so nothing is known of
      // them.
      const double linger_s = variable("PBS_JOBID").empty() ? arguments_.linger_s : 0;
      watch_.emplace(LauncherVigil(linger_s), ProgressVigil(arguments_.places, arguments_.stall_s));
      const sys::ProcessExit exit = wait_for_exit();
      const bool is_stalled = watch_->is_stalled;
      watch_.reset();
      const double uptime_s = sys::monotonic_s() - start_s;
      if (supervisor_.end_leftovers(kGrace_s) && !is_stalled)
        note("ended processes that the command had left behind");
      const std::string shortage = take_note(again_file_);
      // A command that makes no progress may take the signal that ends it for a request to stop in
      // time.
      if (!is_stalled && has_stopped(exit)) return stop();
      if (!is_stalled && exit.succeeded() && arguments_.finish) finish();
      if (exit.succeeded()) return exit.shell_status();
      const bool again =
          shortage.empty() ? goes_on(exit, failures++, uptime_s) : tries_again(shortage);
      if (!again) return exit.shell_status();
    }
  }

 private:
  struct Watch {
    Watch(LauncherVigil over_launchers, ProgressVigil over_progress)
        : launchers(std::move(over_launchers)), progress(std::move(over_progress)) {}
    LauncherVigil launchers;
    ProgressVigil progress;
    bool is_stalled = false;
  };

  static void note(const std::string& text) { fmt::print(stderr, "diapause run: {}\n", text); }

  // Passes signals on until the command is over, or makes no progress and is therefore ended.
  sys::ProcessExit wait_for_exit() {
    double look_s = 2;
    for (const double limit_s : {arguments_.stall_s, arguments_.linger_s}) {
      if (limit_s > 0) look_s = std::min(look_s, std::max(limit_s / 4, 0.1));
    }
    for (;;) {
      const auto signal = supervisor_.wait(look_s);
      if (!signal) {
        if (const auto ended = look_after_command()) return *ended;
        continue;
      }
      if (signal->meaning == sys::SignalMeaning::child_ended) {
        if (const auto exit = supervisor_.bury()) return *exit;
        continue;
      }
      obey(*signal);
    }
  }

  // Ends processes that hang. Returns the exit of the command if the command itself was ended.
  std::optional<sys::ProcessExit> look_after_command() {
    if (!watch_) return std::nullopt;
    const double now_s = sys::monotonic_s();
    for (const auto& order : watch_->launchers.look(supervisor_.leader(), now_s)) {
      note(fmt::format("{} (process {}) lives on and nothing that it started does; sending it {}",
                       order.name, order.process, sys::signal_name(order.signal)));
      sys::Supervisor::signal_process(order.process, order.signal);
    }
    if (!watch_->progress.has_stalled(now_s)) return std::nullopt;
    note(fmt::format("no new line in a ledger and no new version for {} s; ending the command",
                     arguments_.stall_s));
    watch_->is_stalled = true;
    (void)supervisor_.end_leftovers(kGrace_s);
    return sys::ProcessExit{true, SIGKILL};
  }

  void obey(const sys::ReceivedSignal& signal) {
    supervisor_.signal_group(signal.number);
    if (signal.meaning == sys::SignalMeaning::stop) {
      sys::Supervisor::stop_self();
      // The time in which everything was stopped does not count.
      if (watch_) watch_->progress.begin_anew();
    }
    if (signal.meaning != sys::SignalMeaning::end) return;
    end_wanted_ = true;
    note(fmt::format("passed {} on; the command will not be started again",
                     sys::signal_name(signal.number)));
  }

  // Returns whether the command ended because it had to stop. It was told so and ended, or its
  // state was saved and it was killed without being told, or its exit status says so. Reads the
  // program's note and removes it.
  bool has_stopped(const sys::ProcessExit& exit) {
    const auto noted = sys::read_text_file(sys::real_kernel(), stop_file_);
    (void)sys::remove_file(sys::real_kernel(), stop_file_);
    if (noted) reason_ = noted->substr(0, noted->find('\n'));
    const bool told = noted && noted->find("\ntold\n") != std::string::npos;
    return told || (noted && !exit.succeeded()) || (!exit.by_signal && exit.value == kStopped);
  }

  std::string jobs_file() const { return stop_file_ + "-jobs"; }

  void finish() {
    const auto notes = sys::read_text_file(sys::real_kernel(), jobs_file());
    (void)sys::remove_file(sys::real_kernel(), jobs_file());
    if (!notes) return note("the command has opened no job: there is nothing to finish");
    for (const OpenedJob& job : parse_opened_jobs(*notes)) {
      const auto removed = finish_job(job);
      if (!removed) note(removed.error().message);
      if (removed && *removed > 0) {
        note(fmt::format("finished {}: removed {} version{}", job.key, *removed,
                         *removed == 1 ? "" : "s"));
      }
    }
  }

  // Returns what the program has written to the file, which is removed.
  static std::string take_note(const std::string& path) {
    const auto noted = sys::read_text_file(sys::real_kernel(), path);
    (void)sys::remove_file(sys::real_kernel(), path);
    return noted ? noted->substr(0, noted->find('\n')) : "";
  }

  // Returns whether to start again after a start that failed only because the system lacked some
  // resource. Such a failure says nothing about the program and does not count. The pauses become
  // longer.
  bool tries_again(const std::string& shortage) {
    const double pause_s =
        std::max(arguments_.delay_s, std::min(kLongestAgain_s, std::exp2(shortages_)));
    if (end_wanted_ || shortages_ == kMostAgain) {
      note(fmt::format("{}; giving up", shortage));
      return false;
    }
    ++shortages_;
    note(fmt::format("{}; that may be over soon: starting again in {} s", shortage, pause_s));
    pause(pause_s);
    return !end_wanted_;
  }

  int stop() {
    note(reason_.empty() ? "the command stopped in time"
                         : "the command stopped in time: " + reason_);
    // A job that was told to end, for example by scancel, must not be queued again.
    if (!slurm_job_.empty() && !end_wanted_) requeue();
    return kStopped;
  }

  void requeue() {
    note(fmt::format("asking Slurm to queue job {} again", slurm_job_));
    if (const Status started = supervisor_.start({"scontrol", "requeue", slurm_job_}, {});
        !started) {
      note(started.error().message);
      return;
    }
    const sys::ProcessExit exit = wait_for_exit();
    if (!exit.succeeded())
      note(fmt::format("scontrol {}; submit the job again to go on", in_words(exit)));
  }

  // Returns whether to start again, after the pause; reports the decision.
  bool goes_on(const sys::ProcessExit& exit, std::uint64_t attempt, double uptime_s) {
    shortages_ = 0;
    const std::string what =
        fmt::format("start {} {} after {:.1f} s", attempt + 1, in_words(exit), uptime_s);
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
    note(arguments_.delay_s > 0
             ? fmt::format("{}; starting again in {} s", what, arguments_.delay_s)
             : fmt::format("{}; starting again", what));
    pause(arguments_.delay_s);
    return !end_wanted_;
  }

  void pause(double seconds) {
    const double until_s = sys::monotonic_s() + seconds;
    do {  // also without a delay, because a signal may have arrived meanwhile
      const double left_s = until_s - sys::monotonic_s();
      const auto signal = supervisor_.wait(left_s > 0 ? left_s : 0);
      if (signal && signal->meaning == sys::SignalMeaning::child_ended) supervisor_.bury();
      if (signal && signal->meaning != sys::SignalMeaning::child_ended) obey(*signal);
    } while (!end_wanted_ && sys::monotonic_s() < until_s);
  }

  const RunArguments& arguments_;
  sys::Supervisor& supervisor_;
  const std::string slurm_job_;  // empty without Slurm
  const std::string stop_file_;  // the file in which the program notes that it has to stop
  // The file in which the program notes that a start failed because the system lacked some
  // resource.
  const std::string again_file_;
  int shortages_ = 0;           // failures of that kind, one after the other
  std::optional<Watch> watch_;  // while the command runs
  std::string reason_;
  bool end_wanted_ = false;
};

}  // namespace

int run(const RunArguments& arguments) {
  const auto refuse = [](const Error& error) {
    fmt::print(stderr, "diapause run: {}\n", error.message);
    return kCannotRun;
  };
  const auto directory = sys::current_directory();
  if (!directory) return refuse(directory.error());
  // Only --stall looks into the tiers, but a file that is named is meant to be read.
  if (arguments.stall_s > 0 || !arguments.places.config.empty()) {
    const auto roots = tier_roots(arguments.places);
    if (!roots) return refuse(roots.error());
  }
  auto supervisor = sys::Supervisor::create();
  if (!supervisor) return refuse(supervisor.error());
  return Run(arguments, *supervisor, *directory).all_attempts();
}

}  // namespace diapause::cli
