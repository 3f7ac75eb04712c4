// What the agent of a job knows of verbs: how the processes that use them let go of their adapters,
// and get them back.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/control.hpp"

namespace diapause::fabric {

// As long as it holds them, the job's processes have no adapter open, and their threads wait where
// they use verbs. What they had sent has arrived. Its end gives everything back.
class Pause {
 public:
  Pause() = default;
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause();

  // `processes`: all of the job. After a failure nothing has changed for them; Code::again: it may
  // succeed soon.
  Status begin(std::span<const pid_t> processes);
  // Of a job that was restored: its processes are as begin() left them.
  void take_over(std::span<const pid_t> processes);
  // Does nothing if it holds none. Fails if an adapter does not do what its predecessor did;
  // threads then wait on.
  Status end();
  // The same; the next end() tells of a failure.
  void end_early();
  // When the first thread was stopped, in seconds of sys::monotonic_s(); nothing if there are no
  // adapters to be held.
  std::optional<double> since_s() const { return since_s_; }

 private:
  struct Member {
    pid_t process = 0;
    int handle = -1;  // readable when the process has ended
    int memory = -1;
    Page* page = nullptr;
  };
  void find(std::span<const pid_t> processes);
  Status ask_all(Step step, double at_most_s);
  void ask(Member& member, Step step);
  Status answer_of(Member& member, double end_s);
  Status give_directory();
  void let_go();

  std::vector<Member> members_;
  bool is_held_ = false;
  Status ended_early_;
  std::optional<double> since_s_;
};

// Returns the folder that has to stand in LD_LIBRARY_PATH of a program if its verbs are to be
// checkpointed; empty if this machine has no adapter, or Diapause was built without. `program`: the
// path of the command.
std::string library_folder(const std::string& program);

}  // namespace diapause::fabric
