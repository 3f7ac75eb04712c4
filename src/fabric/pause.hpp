// The agent of a job lets the processes that use verbs close their adapters for a checkpoint, and
// open them again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/control.hpp"

namespace diapause::fabric {

// While a pause holds them, the job's processes have no adapter open, their threads wait where they
// use verbs, and everything that they had sent has arrived. The end of the pause gives everything
// back.
class Pause {
 public:
  Pause() = default;
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause();

  // `processes` are all processes of the job. After a failure nothing has changed for them;
  // Code::again says that it may succeed soon. Nothing is touched if one of them uses a fabric that
  // cannot be restored.
  Status begin(std::span<const pid_t> processes);
  // Takes over the processes of a restored job, which are as begin() left them.
  Status take_over(std::span<const pid_t> processes);
  // Does nothing if it holds none. Fails if an adapter does not do what its predecessor did;
  // threads then wait on.
  Status end();
  // Does the same; the next end() tells of a failure.
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
  // Fails if the processes use what cannot be restored.
  Status find(std::span<const pid_t> processes);
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
// checkpointed. It is empty if this machine has no adapter, or if Diapause was built without verbs.
// `program` is the path of the command.
std::string library_folder(const std::string& program);

}  // namespace diapause::fabric
