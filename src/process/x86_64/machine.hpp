// Has everything that depends on the processor: the registers of a stopped thread, and how it is
// made to do system calls.
#pragma once

#include <sys/user.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"

namespace diapause::process {

// These are the registers as PTRACE_GETREGSET gives them for NT_PRSTATUS.
using Registers = user_regs_struct;

// This is one system call that a stopped thread is to do. A table of them lies in the memory of its
// process.
struct Call {
  std::uint64_t number = 0;  // with kMayFail: the table goes on after a failure
  std::array<std::uint64_t, 6> arguments{};
  std::int64_t result = 0;  // or -errno
};
static_assert(sizeof(Call) == 64);
inline constexpr std::uint64_t kMayFail = std::uint64_t{1} << 32;

// Returns code that does all calls of a table, one after the other, and then sends SIGTRAP to its
// own thread, for ever. It needs no stack and no library, and runs at any address.
ByteView call_table_code();

// Makes a thread whose signals wait ready to run that code.
struct TableRun {
  std::uint64_t code = 0;   // place of the code
  std::uint64_t table = 0;  // the first Call
  std::uint64_t count = 0;
  std::uint64_t process = 0;  // the ids that the thread knows itself by
  std::uint64_t thread = 0;
};
Registers registers_for(const TableRun& run, Registers base);
// Returns how many calls of the table were not done when the thread stopped. The first of them is
// the one that failed.
std::uint64_t calls_left(const Registers& registers);

// Makes a thread ready to do one call with the instruction at `instruction`.
Registers registers_for_call(const Call& call, std::uint64_t instruction, Registers base);
// Makes a thread ready to begin with the function at `entry`, which takes nothing. At `stack` is
// its return address.
Registers registers_to_begin_with(std::uint64_t entry, std::uint64_t stack,
                                  std::uint64_t thread_area, Registers base);
std::int64_t result_of(const Registers& registers);
// Returns where in `code` such an instruction is, or npos.
std::size_t find_call_instruction(ByteView code);

// Returns an argument, counted from 0, of the call that a thread was stopped in.
std::uint64_t argument_of(const Registers& registers, std::size_t number);
void set_argument(Registers& registers, std::size_t number, std::uint64_t value);
// Returns where a thread that is in a call has room for so many bytes. It does not use them before
// the call is over.
std::uint64_t below_stack(const Registers& registers, std::size_t bytes);

// Returns the system call that a thread was stopped in, or -1 if it was in none.
std::int64_t call_under_way(const Registers& registers);
// Returns whether that call goes on until a time that only the kernel knows.
bool is_until_time_of_kernel(const Registers& registers);
// Makes a thread that comes out of a call do it again, whatever the call has returned.
void wind_back(Registers& registers);
// Returns the number that the code before a call's instruction puts into the register of the call,
// or -1 if the code does not show it. `code` ends behind that instruction.
std::int64_t number_before_call(ByteView code);

}  // namespace diapause::process
