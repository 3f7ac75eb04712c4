// One thread of another process, stopped from outside with ptrace. All functions are for the thread of this process
// that has attached to it, and no other.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/x86_64/machine.hpp"

namespace diapause::process {

// Why a traced thread does not run.
struct Stop {
  bool has_ended = false;
  int signal = 0;
  int event = 0;  // PTRACE_EVENT_*; 0: none
};

// Attaches to a thread without stopping it. From then on new threads and children of it are attached to as well.
// Code::denied if another debugger has it.
Status attach(pid_t thread);
// Asks an attached thread to stop.
Status ask_to_stop(pid_t thread);
// Until the thread stops or ends. Code::timeout after `limit_s`.
Result<Stop> await_stop(pid_t thread, double limit_s);
// Until it stands still where the kernel would look for signals; those that come first are handed on. False: it ended.
Result<bool> await_stillness(pid_t thread, double limit_s);
// Lets a stopped thread run on; `signal` 0: none is delivered.
Status run_on(pid_t thread, int signal = 0);
// Lets go of a stopped thread, which runs on.
Status detach(pid_t thread);

Result<Registers> registers_of(pid_t thread);
Status set_registers(pid_t thread, const Registers& registers);
// Floating point and vector registers, as the processor saves them.
Result<ByteVector> extended_registers_of(pid_t thread);
Status set_extended_registers(pid_t thread, ByteView data);

Result<std::uint64_t> signal_mask_of(pid_t thread);
Status set_signal_mask(pid_t thread, std::uint64_t mask);

// The mask of a thread that does calls for us: only the signal that ends them comes through.
inline constexpr std::uint64_t kMaskInCalls = ~(std::uint64_t{1} << 4);  // SIGTRAP is 5

// Restartable sequences, as the thread has told the kernel.
struct SequenceArea {
  std::uint64_t address = 0;  // 0: none
  std::uint32_t size = 0;
  std::uint32_t signature = 0;
};
Result<SequenceArea> sequence_area_of(pid_t thread);

// Signals that wait, as siginfo_t. From both queues: of the thread, or of all its process.
enum class Queue { thread, process };
Result<std::vector<ByteVector>> waiting_signals_of(pid_t thread, Queue queue);

// Makes a stopped thread do one call, by an instruction at `instruction`. Its registers are not put back.
Result<std::int64_t> call_at(pid_t thread, std::uint64_t instruction, const Call& call);
// Lets a stopped thread enter the call that its registers are made ready for, and run on from there.
Status enter_call(pid_t thread);
// Runs a thread whose registers point at the code of call_table_code() until the table is done. What new threads and
// processes the calls make is in the order in which they were made.
Status run_table(pid_t thread, std::vector<pid_t>* made);
// A thread that has stopped anywhere stops again where the kernel looks for signals, having run none of its own code.
Status stop_for_signals(pid_t thread);

// Kills a stopped process, and returns when it has ended. Its parent still has to wait for it.
void end_traced(pid_t process);
// From now on a stopped thread is killed if this process ends.
Status end_with_tracer(pid_t thread);

// Reads from, or writes to, the memory of another process; all of it, or an error that names the process.
Status read_memory(pid_t process, std::uint64_t address, MutableBytes to);
Status write_memory(pid_t process, std::uint64_t address, ByteView from);
// The same for pages that the process itself may not read or write now.
Status read_any_memory(pid_t process, std::uint64_t address, MutableBytes to);
Status write_any_memory(pid_t process, std::uint64_t address, ByteView from);

}  // namespace diapause::process
