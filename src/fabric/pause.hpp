// The agents of a job let the processes that use verbs close their adapters for a checkpoint, and
// open them again.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "fabric/board.hpp"
#include "fabric/control.hpp"
#include "sys/ended_thread.hpp"

namespace diapause::fabric {

// Says whether the other agents have done a step before a call, which may take them longer.
enum class Before : std::uint8_t { nothing, step };
// All agents of a job make this call together. Each gives what has happened to it, and some bytes,
// and gets the bytes of all. It fails for all if one gives a failure or cannot be reached.
using Gather =
    std::function<Result<std::vector<ByteVector>>(const Status& own, ByteView mine, Before before)>;
// Of an agent that has no others.
Result<std::vector<ByteVector>> gather_alone(const Status& own, ByteView mine, Before before);

// Begins the listeners of control.hpp again in processes where they have ended.
using Wake = std::function<Status(std::span<const sys::EndedThread> listeners)>;

// No step of a pause takes an agent longer, in seconds.
inline constexpr double kLongestStep_s = 60;

// While a pause holds them, the job's processes have no adapter open, their threads wait where they
// use verbs, and everything that they had sent has arrived. All calls but forget() and abandon()
// are made by all agents of the job together.
class Pause {
 public:
  // `board` is that of this node. It must outlive the pause.
  Pause(Gather gather, Wake wake, Board& board)
      : gather_(std::move(gather)), wake_(std::move(wake)), board_(board) {}
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause() { abandon(); }

  // `processes` are all processes of the job on this node. Nothing is touched if one of them, on
  // any node, uses a fabric that cannot be restored. After another failure threads may wait until
  // end() is called. Code::again says that it may succeed soon.
  Status begin(std::span<const pid_t> processes);
  // Takes over the processes of a restored job, which are as begin() left them.
  Status take_over(std::span<const pid_t> processes);
  // Returns whether processes of the job wait for the end, on this node or on others. After a
  // failure others may wait although this agent holds nothing.
  bool holds() const { return state_ != State::idle; }
  // Returns whether there were such processes when the pause last began.
  bool is_used() const { return is_used_; }
  // Gives everything back. It may be called again if it has failed because another agent did
  // something else. It fails for good if an adapter does not do what its predecessor did; threads
  // then wait on.
  Status end();
  // Lets threads go on without the other agents if the adapters are open. Returns whether they are.
  bool abandon();
  // The processes are to end, and are not given anything back.
  void forget();
  // Returns whether one of these processes has begun to use verbs since begin() looked.
  bool has_newcomer(std::span<const pid_t> processes) const;
  // When the first thread was stopped, in seconds of sys::monotonic_s(); nothing if there are no
  // adapters to be held.
  std::optional<double> since_s() const {
    return holds() ? std::optional<double>(since_s_) : std::nullopt;
  }

 private:
  // What has been done last, or was begun and has failed.
  enum class State : std::uint32_t { idle, stopped, closed, opened, connected };
  struct Member {
    pid_t process = 0;
    int handle = -1;  // readable when the process has ended
    int memory = -1;
    Page* page = nullptr;
  };
  // What an agent tells the others.
  struct Standing {
    State state = State::idle;
    std::uint32_t members = 0;
  };
  static std::optional<Member> member_at(const std::string& path, pid_t process);
  static void let_go(const Member& member);
  Result<std::vector<Standing>> compare(const Status& own);
  Status agree(const Status& own);
  // Fails if the processes use what cannot be restored.
  Status find(std::span<const pid_t> processes);
  Status ask_all(Step step, double at_most_s);
  void ask(Member& member, Step step);
  static bool sleeps(const Member& member);
  Status wake(std::span<const Member> members);
  Status answer_of(Member& member, Step step, double end_s);
  Result<std::vector<Record>> own_records() const;
  Status give_directory(const Status& own);
  void let_go_of_all();

  const Gather gather_;
  const Wake wake_;
  Board& board_;
  std::vector<Member> members_;
  State state_ = State::idle;
  bool is_used_ = false;
  Status broken_;  // by what did not do what its predecessor did
  double since_s_ = 0;
};

// Returns the folder that has to stand in LD_LIBRARY_PATH of a program if its verbs are to be
// checkpointed. It is empty if this machine has no adapter, or if Diapause was built without verbs.
// `program` is the path of the command.
std::string library_folder(const std::string& program);

}  // namespace diapause::fabric
