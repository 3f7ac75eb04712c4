// Controls one thread of another process, stopped from outside with ptrace. All functions are for
// the thread of this process that has attached to it, and no other.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/x86_64/machine.hpp"

namespace diapause::process {

// Says why a traced thread does not run.
struct Stop {
  bool has_ended = false;
  int signal = 0;
  int event = 0;  // PTRACE_EVENT_*; 0: none
};

// Attaches to a thread without stopping it. From then on new threads and children of it are
// attached to as well. Code::denied says that another debugger has it.
Status attach(pid_t thread);
// Does the same, and has the kernel kill the thread, and what is attached to in this way, if this
// process ends.
Status attach_to_end_with_us(pid_t thread);
// Tells an attached thread to stop, and does not wait for it.
Status ask_to_stop(pid_t thread);
// Waits until the thread stops or ends. Returns Code::timeout after `limit_s`.
Result<Stop> await_stop(pid_t thread, double limit_s);
// Waits until the thread stands still where the kernel looks for signals, and hands on the signals
// that come before. Returns false if the thread has ended.
Result<bool> await_stillness(pid_t thread, double limit_s);
// Lets a stopped thread run on, and delivers `signal` to it unless that is 0.
Status run_on(pid_t thread, int signal = 0);
// Lets go of a stopped thread, which runs on.
Status detach(pid_t thread);
// Waits for a thread if it has ended, so that its own parent can. May be called by a signal
// handler.
void bury_if_ended(pid_t thread);
// Waits for any child or thread that has ended, and returns nothing if none has. Lets go of threads
// that have stopped after nobody waited for that any more, so it must be called only while none is
// to stand still.
std::optional<siginfo_t> next_end();

// Fails with Code::argument for a thread of a 32-bit program. The message goes on from the name of
// the program.
Result<Registers> registers_of(pid_t thread);
Status set_registers(pid_t thread, const Registers& registers);
// These are the floating point and vector registers, as the processor saves them.
Result<ByteVector> extended_registers_of(pid_t thread);
Status set_extended_registers(pid_t thread, ByteView data);

Result<std::uint64_t> signal_mask_of(pid_t thread);
Status set_signal_mask(pid_t thread, std::uint64_t mask);

// This is the mask of a thread that does calls for us. Only the signal that ends the calls comes
// through.
inline constexpr std::uint64_t kMaskInCalls = ~(std::uint64_t{1} << 4);  // SIGTRAP is 5

// This is what a thread has told the kernel about its restartable sequences.
struct SequenceArea {
  std::uint64_t address = 0;  // 0: none
  std::uint32_t size = 0;
  std::uint32_t signature = 0;
};
Result<SequenceArea> sequence_area_of(pid_t thread);

// Returns the signals that wait in a queue, each as siginfo_t. One queue belongs to the thread, the
// other to its process.
enum class Queue { thread, process };
Result<std::vector<ByteVector>> waiting_signals_of(pid_t thread, Queue queue);

// Makes a stopped thread do one call with the instruction at `instruction`. The registers are not
// restored afterwards.
Result<std::int64_t> call_at(pid_t thread, std::uint64_t instruction, const Call& call);
// Lets a stopped thread enter the call that its registers are made ready for, and run on from
// there.
Status enter_call(pid_t thread);
// Runs a thread whose registers point at the code of call_table_code() until the table is done.
// `made` gets the threads and processes that the calls make, in their order.
Status run_table(pid_t thread, std::vector<pid_t>* made);
// Lets a stopped thread whose signals are masked run on until it comes out of the code from `begin`
// to `end`, and returns its registers then. It is still there after `most_steps` instructions.
Result<Registers> leave_code(pid_t thread, std::uint64_t begin, std::uint64_t end,
                             std::uint32_t most_steps);
// Makes a thread that has stopped anywhere stop again where the kernel looks for signals. It runs
// none of its own code in between.
Status stop_for_signals(pid_t thread);

// Kills a stopped process, and returns when it has ended. Its parent still has to wait for it.
void end_traced(pid_t process);
// Has the kernel kill a stopped thread if this process ends, from now on.
Status end_with_tracer(pid_t thread);

// While it exists, the kernel kills a process, which runs on, if this process ends.
class Tie {
 public:
  static Result<Tie> to(pid_t process);
  Tie(Tie&& other) noexcept : process_(std::exchange(other.process_, 0)) {}
  Tie& operator=(Tie&&) = delete;
  ~Tie() { (void)end(); }
  // Ends the tie before. The process runs on also if it has none any more.
  Status end();

 private:
  explicit Tie(pid_t process) : process_(process) {}
  pid_t process_;  // 0: it has ended
};

// These read from, or write to, the memory of another process. An error names the process if not
// all could be moved.
Status read_memory(pid_t process, std::uint64_t address, MutableBytes to);
Status write_memory(pid_t process, std::uint64_t address, ByteView from);
// These do the same, also for pages that the process itself may not read or write now.
Status read_any_memory(pid_t process, std::uint64_t address, MutableBytes to);
Status write_any_memory(pid_t process, std::uint64_t address, ByteView from);

}  // namespace diapause::process
