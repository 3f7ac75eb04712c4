#include "process/x86_64/machine.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

// This code is copied into processes. rbx points to the next call, r12 is the number of calls left,
// and r13 and r14 are the process and the thread that get the signal. A call that fails ends the
// table, unless the upper half of its number is set.
asm(R"(
  .pushsection .rodata
  .balign 16
  .globl diapause_call_table_begin
  .hidden diapause_call_table_begin
  .globl diapause_call_table_end
  .hidden diapause_call_table_end
diapause_call_table_begin:
1:
  test %r12, %r12
  jz 3f
  mov (%rbx), %eax
  mov 8(%rbx), %rdi
  mov 16(%rbx), %rsi
  mov 24(%rbx), %rdx
  mov 32(%rbx), %r10
  mov 40(%rbx), %r8
  mov 48(%rbx), %r9
  syscall
  mov %rax, 56(%rbx)
  cmpl $0, 4(%rbx)
  jne 2f
  cmp $-4095, %rax
  jae 3f
2:
  add $64, %rbx
  dec %r12
  jmp 1b
3:
  mov $234, %eax
  mov %r13, %rdi
  mov %r14, %rsi
  mov $5, %edx
  syscall
  jmp 3b
diapause_call_table_end:
  .popsection
)");

extern "C" const std::byte diapause_call_table_begin[];
extern "C" const std::byte diapause_call_table_end[];

namespace diapause::process {
namespace {

constexpr std::byte kCallInstruction[] = {std::byte{0x0f}, std::byte{0x05}};
constexpr std::uint64_t kNoCall = ~std::uint64_t{0};

unsigned long long* argument_in(Registers& registers, std::size_t number) {
  unsigned long long* const places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                        &registers.r10, &registers.r8,  &registers.r9};
  return places[number];
}

}  // namespace

static_assert(SYS_tgkill == 234, "the number stands in the code above");

ByteView call_table_code() { return {diapause_call_table_begin, diapause_call_table_end}; }

Registers registers_for(const TableRun& run, Registers base) {
  base.rip = run.code;
  base.rbx = run.table;
  base.r12 = run.count;
  base.r13 = run.process;
  base.r14 = run.thread;
  base.orig_rax = kNoCall;
  // Clears the trap flag (single steps) and the direction flag.
  base.eflags &= ~std::uint64_t{0x500};
  return base;
}

std::uint64_t calls_left(const Registers& registers) { return registers.r12; }

Registers registers_for_call(const Call& call, std::uint64_t instruction, Registers base) {
  base.rip = instruction;
  base.rax = call.number;
  base.rdi = call.arguments[0];
  base.rsi = call.arguments[1];
  base.rdx = call.arguments[2];
  base.r10 = call.arguments[3];
  base.r8 = call.arguments[4];
  base.r9 = call.arguments[5];
  base.orig_rax = kNoCall;
  return base;
}

Registers registers_to_begin_with(std::uint64_t entry, std::uint64_t stack,
                                  std::uint64_t thread_area, Registers base) {
  constexpr std::uint64_t kDirection = 1 << 10;  // functions find this flag cleared
  base.rip = entry;
  base.rsp = stack;
  base.rbp = 0;
  base.fs_base = thread_area;
  base.eflags &= ~kDirection;
  base.orig_rax = kNoCall;
  return base;
}

std::int64_t result_of(const Registers& registers) {
  return static_cast<std::int64_t>(registers.rax);
}

std::size_t find_call_instruction(ByteView code) {
  const auto found = std::search(code.begin(), code.end(), std::begin(kCallInstruction),
                                 std::end(kCallInstruction));
  return found == code.end() ? std::string::npos : static_cast<std::size_t>(found - code.begin());
}

std::uint64_t argument_of(const Registers& registers, std::size_t number) {
  Registers changed = registers;
  return *argument_in(changed, number);
}

void set_argument(Registers& registers, std::size_t number, std::uint64_t value) {
  *argument_in(registers, number) = value;
}

std::uint64_t below_stack(const Registers& registers, std::size_t bytes) {
  constexpr std::uint64_t kRedZone = 128, kAlignment = 16;  // values of the psABI
  return (registers.rsp - kRedZone - bytes) / kAlignment * kAlignment;
}

std::int64_t call_under_way(const Registers& registers) {
  const auto number = static_cast<std::int64_t>(registers.orig_rax);
  return number < 0 ? -1 : number;
}

bool is_until_time_of_kernel(const Registers& registers) {
  constexpr std::int64_t kRestartBlock = -516;  // ERESTART_RESTARTBLOCK
  return call_under_way(registers) >= 0 && result_of(registers) == kRestartBlock;
}

void wind_back(Registers& registers) {
  registers.rip -= sizeof kCallInstruction;
  registers.rax = registers.orig_rax;
  registers.orig_rax = kNoCall;
}

// The code before the call may be mov $number, %eax (b8), or the same with sign extension to %rax
// (48 c7 c0).
std::int64_t number_before_call(ByteView code) {
  if (code.size() < 9) return -1;
  const ByteView last = code.last(9);
  if (!std::equal(std::begin(kCallInstruction), std::end(kCallInstruction), last.begin() + 7))
    return -1;
  const bool is_short = last[2] == std::byte{0xb8};
  const bool is_long =
      last[0] == std::byte{0x48} && last[1] == std::byte{0xc7} && last[2] == std::byte{0xc0};
  if (!is_short && !is_long) return -1;
  std::int32_t number = 0;
  std::memcpy(&number, last.data() + 3, sizeof number);
  return number;
}

}  // namespace diapause::process
