#include "sys/supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace diapause::sys {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kSignals = {
    ReceivedSignal{SIGCHLD, SignalMeaning::child_ended},
    ReceivedSignal{SIGINT, SignalMeaning::end},
    ReceivedSignal{SIGTERM, SignalMeaning::end},
    ReceivedSignal{SIGHUP, SignalMeaning::end},
    ReceivedSignal{SIGQUIT, SignalMeaning::end},
    ReceivedSignal{SIGTSTP, SignalMeaning::stop},
    ReceivedSignal{SIGCONT, SignalMeaning::notice},
    ReceivedSignal{SIGUSR1, SignalMeaning::notice},
    ReceivedSignal{SIGUSR2, SignalMeaning::notice},
};

timespec to_timespec(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_IGN;
}

// Runs in the child between fork and exec. Reports a failure to the parent through `report`.
[[noreturn]] void become_command(const std::vector<char*>& arguments,
                                 const std::vector<Supervisor::Variable>& variables,
                                 const sigset_t& mask, pid_t parent, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);  // the parent died before the line above
  if (::isatty(STDIN_FILENO) != 0) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  for (const Supervisor::Variable& variable : variables) {
    ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(EXIT_FAILURE);
}

// Returns 0 once the command runs, else the errno of its failed exec.
int read_report(int report) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

Result<Supervisor> Supervisor::create() {
  Supervisor supervisor;
  sigemptyset(&supervisor.waited_);
  for (const ReceivedSignal& signal : kSignals) {
    if (signal.meaning == SignalMeaning::child_ended || !is_ignored(signal.number)) {
      sigaddset(&supervisor.waited_, signal.number);
    }
  }
  // A parent that ignores SIGCHLD passes that on, and then children cannot be waited for.
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  if (::sigaction(SIGCHLD, &normal, nullptr) != 0)
    return fail(os_error("cannot set the action of SIGCHLD", errno));
  if (::sigprocmask(SIG_BLOCK, &supervisor.waited_, &supervisor.mask_before_) != 0) {
    return fail(os_error("cannot block signals", errno));
  }
  supervisor.restores_mask_ = true;
  // This process must reap leftovers of the group whose parents are gone. Where process 1 does not
  // do that (in containers), a group of dead processes would never look empty.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(os_error("cannot adopt orphaned processes", errno));
  return supervisor;
}

Supervisor::Supervisor(Supervisor&& other) noexcept
    : waited_(other.waited_),
      mask_before_(other.mask_before_),
      restores_mask_(std::exchange(other.restores_mask_, false)),
      group_(std::exchange(other.group_, 0)) {}

Supervisor::~Supervisor() {
  if (!restores_mask_) return;
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Status Supervisor::start(const std::vector<std::string>& command,
                         const std::vector<Variable>& variables) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return fail(os_error("cannot make a pipe", errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_command(arguments, variables, mask_before_, parent, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  if (child < 0) {
    ::close(report[0]);
    return fail(os_error("cannot make a process", fork_error));
  }
  ::setpgid(child, child);  // called here and in the child, so that either may be first
  const int exec_error = read_report(report[0]);
  ::close(report[0]);
  if (exec_error != 0) {
    ::waitpid(child, nullptr, 0);
    return fail(os_error("cannot run " + command[0], exec_error));
  }
  group_ = child;
  return {};
}

std::optional<ReceivedSignal> Supervisor::wait(std::optional<double> timeout_s) {
  const auto start = Clock::now();
  for (;;) {
    int number = 0;
    if (timeout_s) {
      const double passed_s = std::chrono::duration<double>(Clock::now() - start).count();
      const timespec left = to_timespec(std::max(0.0, *timeout_s - passed_s));
      number = ::sigtimedwait(&waited_, nullptr, &left);
    } else {
      number = ::sigwaitinfo(&waited_, nullptr);
    }
    for (const ReceivedSignal& signal : kSignals) {
      if (signal.number == number) return signal;
    }
    if (number < 0 && errno == EAGAIN) return std::nullopt;
  }
}

std::optional<ProcessExit> Supervisor::bury() {
  std::optional<ProcessExit> exit;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return exit;
    if (ended != group_) continue;
    exit = WIFSIGNALED(status) ? ProcessExit{true, WTERMSIG(status)}
                               : ProcessExit{false, WEXITSTATUS(status)};
  }
}

void Supervisor::signal_group(int number) const {
  if (group_ > 0) ::kill(-group_, number);
}

void Supervisor::signal_process(std::int64_t process, int number) {
  ::kill(static_cast<pid_t>(process), number);
}

bool Supervisor::group_has_processes() const {
  return group_ > 0 && (::kill(-group_, 0) == 0 || errno == EPERM);
}

bool Supervisor::wait_for_empty_group(double limit_s) {
  // A leftover whose parent is outside of the group is not our child and causes no signal here, so
  // the group is polled.
  constexpr double kLookAgain_s = 0.1;
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);  // the others stay pending for wait()
  const auto start = Clock::now();
  for (;;) {
    bury();
    if (!group_has_processes()) return true;
    const double left_s = limit_s - std::chrono::duration<double>(Clock::now() - start).count();
    if (left_s <= 0) return false;
    const timespec pause = to_timespec(std::min(left_s, kLookAgain_s));
    (void)::sigtimedwait(&child_ended, nullptr, &pause);
  }
}

bool Supervisor::end_leftovers(double grace_s) {
  // Only processes stuck in the kernel take longer, and they cannot run on.
  constexpr double kKilledProcessesEnd_s = 5;
  bury();
  if (!group_has_processes()) {
    group_ = 0;  // the number may be reused from now on
    return false;
  }
  signal_group(SIGTERM);
  signal_group(SIGCONT);  // a stopped process would not act on SIGTERM
  if (!wait_for_empty_group(grace_s)) {
    signal_group(SIGKILL);
    wait_for_empty_group(kKilledProcessesEnd_s);
  }
  group_ = 0;
  return true;
}

void Supervisor::stop_self() { ::kill(::getpid(), SIGSTOP); }

}  // namespace diapause::sys
