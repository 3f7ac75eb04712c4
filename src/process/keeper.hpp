// Process 1 of a job owns the job's namespaces, starts its command or waits until that is restored,
// buries orphans, and ends with the command. It lives on if the process that made it dies, and the
// job with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/watch.hpp"

namespace diapause::process {

// Says which process group the job's processes are in, unless they begin their own.
enum class JobGroup {
  of_caller,  // the group of this process: signals of a terminal to its foreground reach the job
  own,        // a signal to the group of this process does not reach the job
};

// Returns whether this process has a controlling terminal.
bool has_terminal();

class Keeper {
 public:
  // Fails with Code::denied, as launch() does, if the machine forbids users the namespaces. It
  // tries that, and leaves nothing behind. Root with its usual rights is not asked to wait for a
  // trial.
  static Status check();
  // Starts `command` (looked up in PATH) in new PID, IPC and mount namespaces, and of a user
  // namespace unless this process may do without. Code::denied says what the machine forbids, and
  // Code::not_found that there is no such command. `place.host_name` is what the job sees as the
  // name of its machine; if it is empty, the job sees the name that the machine has. A command that
  // `only_serves` starts others for a job on several nodes and never ends by itself: when this
  // process is gone, it is ended as soon as it is alone.
  struct Place {
    std::string host_name;
    JobGroup group = JobGroup::of_caller;
    bool only_serves = false;
  };
  static Result<Keeper> launch(const std::vector<std::string>& command, const Watch& watch,
                               const Place& place);
  // Does the same without a command: process 1 waits. It inherits the descriptors of this process.
  static Result<Keeper> wait_for_processes(const Watch& watch, const Place& place);
  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper();  // the job goes on

  pid_t process() const { return process_; }
  // Returns the id of the command in the job.
  std::uint32_t command() const { return command_; }
  // Tells process 1, after wait_for_processes(), that the processes exist and that the job ends
  // with `command`.
  Status begin(std::uint32_t command);
  // Ends the job, with all its processes.
  void end() const;
  void signal_command(int number) const;
  // Returns whether the command is in the process group of this process.
  bool shares_group() const;

  // Returns the status of the job as a shell gives it (128 + N after signal N) once the job has
  // ended. Until then it takes note of the processes that were killed while this process traced
  // them: the job does not end before. It must not be called while the job is frozen.
  std::optional<int> exit_status();
  // Returns whether process 1 was killed, and with it the whole job, which would have gone on.
  bool was_killed() const { return was_killed_; }

 private:
  Keeper(pid_t process, int orders) : process_(process), orders_(orders) {}
  static Result<Keeper> make(const std::vector<std::string>* command, const Watch& watch,
                             const Place& place);
  pid_t command_here() const;

  pid_t process_;
  int orders_;  // a pipe to it
  std::uint32_t command_ = 0;
  std::optional<int> exit_status_;
  bool was_killed_ = false;
};

}  // namespace diapause::process
