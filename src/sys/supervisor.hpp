// Runs a command in a process group of its own and receives the signals of this process meanwhile.
// It is for `diapause run` only: it changes the signal mask of the calling thread and adopts
// orphans of its children, which no library may do.
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
  end,     // the user asks for an end: SIGINT, SIGTERM, SIGHUP, SIGQUIT
  stop,    // SIGTSTP
  notice,  // SIGCONT, SIGUSR1, SIGUSR2
};
struct ReceivedSignal {
  int number;
  SignalMeaning meaning;
};

// There is one object per process. The class is not thread-safe, and the process must have no other
// threads.
class Supervisor {
 public:
  // From this call on, the signals above wait for wait(). Signals that this process was started to
  // ignore stay ignored.
  static Result<Supervisor> create();
  Supervisor(Supervisor&& other) noexcept;
  Supervisor& operator=(Supervisor&&) = delete;
  ~Supervisor();  // restores the former effect of the signals

  struct Variable {
    std::string name, value;
  };
  // Starts `command` (looked up in PATH) as the leader of a new process group, with `variables`
  // added to its environment. If this process dies, the leader (but not the rest of the group) gets
  // SIGTERM. If standard input is a terminal, the command reads from /dev/null instead, because a
  // background group that reads from a terminal would be stopped.
  Status start(const std::vector<std::string>& command, const std::vector<Variable>& variables);

  // Sleeps until a signal arrives. Returns nullopt when `timeout_s` seconds are over.
  std::optional<ReceivedSignal> wait(std::optional<double> timeout_s);

  // Reaps all ended children and adopted orphans. Returns the exit of the command once it is among
  // them.
  std::optional<ProcessExit> bury();

  std::int64_t leader() const { return group_; }  // process id of the command; 0: none was started
  // Signals a process that the command, or one of its descendants, has started.
  static void signal_process(std::int64_t process, int number);
  void signal_group(int number) const;  // no effect if there is no such process
  bool group_has_processes() const;
  // Ends the rest of the group with SIGTERM, and with SIGKILL after `grace_s` seconds. Returns
  // whether there was anything to end.
  bool end_leftovers(double grace_s);

  // Stops this process as SIGTSTP does by default. Returns when the process is continued.
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
