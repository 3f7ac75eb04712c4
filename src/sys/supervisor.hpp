// A command that runs in a process group of its own, and the signals this process gets meanwhile. For `diapause run`:
// changes the signal mask of the calling thread and adopts orphans of its children, which no library may do.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::sys {

struct ProcessExit {
  bool by_signal = false;
  int value = 0;  // exit status, or the number of the signal
  bool succeeded() const { return !by_signal && value == 0; }
  int shell_status() const { return by_signal ? 128 + value : value; }
};

enum class SignalMeaning {
  child_ended,
  end,     // the user wants an end: SIGINT, SIGTERM, SIGHUP, SIGQUIT
  stop,    // SIGTSTP
  notice,  // SIGCONT, SIGUSR1, SIGUSR2
};
struct ReceivedSignal {
  int number;
  SignalMeaning meaning;
};

// One per process. Not thread-safe; the process must have no other threads.
class Supervisor {
 public:
  // From here on the signals above wait for wait(). Those that this process was started to ignore stay ignored.
  static Result<Supervisor> create();
  Supervisor(Supervisor&& other) noexcept;
  Supervisor& operator=(Supervisor&&) = delete;
  ~Supervisor();  // the signals do what they did before

  struct Variable {
    std::string name, value;
  };
  // Starts `command` (looked up in PATH) as the leader of a new process group, with `variables` in its environment.
  // Should this process die, the leader (but not the rest of the group) gets SIGTERM. If standard input is a terminal,
  // the command reads from /dev/null instead: a background group that reads from a terminal would be stopped.
  Status start(const std::vector<std::string>& command, const std::vector<Variable>& variables);

  // Sleeps until a signal comes; nullopt when `timeout_s` is over.
  std::optional<ReceivedSignal> wait(std::optional<double> timeout_s);

  // Buries all ended children and adopted orphans; the exit of the command once it is among them.
  std::optional<ProcessExit> bury();

  std::int64_t leader() const { return group_; }  // process id of the command; 0: none was started
  // A process that the command has started, or what it has started.
  static void signal_process(std::int64_t process, int number);
  void signal_group(int number) const;  // nothing if there is no such process any more
  bool group_has_processes() const;
  // Ends what is left of the group: SIGTERM, after `grace_s` seconds SIGKILL. True if there was something.
  bool end_leftovers(double grace_s);

  // As SIGTSTP does by default; returns when the process is continued.
  static void stop_self();

 private:
  Supervisor() = default;
  bool wait_for_empty_group(double limit_s);

  sigset_t waited_{};
  sigset_t mask_before_{};
  bool restores_mask_ = false;
  pid_t group_ = 0;  // also the leader's process id; 0: none was started
};

}  // namespace diapause::sys
