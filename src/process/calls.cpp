#include "process/calls.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "process/kernel_code.hpp"
#include "process/proc.hpp"

namespace diapause::process {
namespace {

constexpr double kBirthLimit_s = 10;

bool is_failure(std::int64_t result) { return result < 0 && result >= -4095; }

Error call_error(const ThreadName& thread, const Call& call) {
  return os_error(fmt::format("thread {}: system call {} done for us", thread.thread,
                              static_cast<std::uint32_t>(call.number)),
                  static_cast<int>(-call.result));
}

}  // namespace

Result<Calls> Calls::plant(const ThreadName& thread, std::uint64_t address,
                           std::uint64_t instruction) {
  Call map{SYS_mmap,
           {address, kBytes, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~0ull, 0},
           0};
  DIAPAUSE_TRY(set_signal_mask(thread.here, kMaskInCalls));
  DIAPAUSE_TRY_ASSIGN(map.result, call_at(thread.here, instruction, map));
  if (map.result != static_cast<std::int64_t>(address)) return fail(call_error(thread, map));
  Calls planted(address);
  DIAPAUSE_TRY(write_memory(thread.here, address, call_table_code()));
  Call protect{SYS_mprotect, {address, kCodeBytes, PROT_READ | PROT_EXEC}, 0};
  DIAPAUSE_TRY_ASSIGN(protect.result, call_at(thread.here, instruction, protect));
  if (protect.result != 0) return fail(call_error(thread, protect));
  return planted;
}

Status Calls::make_ready(const ThreadName& thread, std::span<Call> calls,
                         std::uint64_t mask) const {
  const std::uint64_t table = address_ + kCodeBytes;
  DIAPAUSE_TRY(write_memory(thread.here, table, std::as_bytes(calls)));
  DIAPAUSE_TRY(set_signal_mask(thread.here, mask));
  DIAPAUSE_TRY_ASSIGN(const Registers before, registers_of(thread.here));
  const TableRun run{address_, table, calls.size(), thread.process, thread.thread};
  return set_registers(thread.here, registers_for(run, before));
}

Status Calls::run_away(const ThreadName& thread, std::span<Call> calls, std::uint64_t mask) const {
  DIAPAUSE_TRY(make_ready(thread, calls, mask));
  return detach(thread.here);
}

Status Calls::run_part(const ThreadName& thread, std::span<Call> calls,
                       std::vector<pid_t>* made) const {
  const std::uint64_t table = address_ + kCodeBytes;
  DIAPAUSE_TRY(make_ready(thread, calls, kMaskInCalls));
  DIAPAUSE_TRY(run_table(thread.here, made));
  DIAPAUSE_TRY_ASSIGN(const Registers after, registers_of(thread.here));
  DIAPAUSE_TRY(read_memory(thread.here, table, std::as_writable_bytes(calls)));
  const std::uint64_t left = calls_left(after);
  if (left == 0 || left > calls.size()) return {};
  return fail(call_error(thread, calls[calls.size() - left]));
}

Status Calls::run(const ThreadName& thread, std::vector<Call>& calls,
                  std::vector<pid_t>* made) const {
  for (std::size_t begin = 0; begin < calls.size(); begin += kMostCalls) {
    const std::size_t count = std::min(kMostCalls, calls.size() - begin);
    DIAPAUSE_TRY(run_part(thread, std::span(calls).subspan(begin, count), made));
  }
  return {};
}

Result<std::uint64_t> Calls::one(const ThreadName& thread, const Call& call,
                                 std::vector<pid_t>* made) const {
  std::vector<Call> calls = {call};
  DIAPAUSE_TRY(run(thread, calls, made));
  if (is_failure(calls[0].result)) return fail(call_error(thread, calls[0]));
  return static_cast<std::uint64_t>(calls[0].result);
}

Result<Calls::Birth> Calls::birth(const ThreadName& parent, const Call& call) const {
  std::vector<pid_t> made;
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t id, one(parent, call, &made));
  if (made.size() != 1)
    return fail(Code::internal, fmt::format("thread {} was not seen when it was made", id));
  DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(made[0], kBirthLimit_s));
  if (!lives) return fail(Code::internal, fmt::format("thread {} ended when it was made", id));
  return Birth{made[0], static_cast<std::uint32_t>(id)};
}

Status Calls::remove(const ThreadName& thread, std::uint64_t instruction) const {
  Call unmap{SYS_munmap, {address_, kBytes}, 0};
  DIAPAUSE_TRY_ASSIGN(unmap.result, call_at(thread.here, instruction, unmap));
  if (unmap.result != 0) return fail(call_error(thread, unmap));
  return {};
}

// The vdso is searched first, because it is small and contains an instruction for system calls. Any
// other executable mapping will do as well.
Result<std::uint64_t> find_call_instruction_of(pid_t process) {
  DIAPAUSE_TRY_ASSIGN(std::vector<Mapping> mappings, places_of(process));
  std::stable_partition(mappings.begin(), mappings.end(),
                        [](const Mapping& one) { return has_kernel_code(one); });
  for (const Mapping& mapping : mappings) {
    if ((mapping.protection & PROT_EXEC) == 0 || mapping.name == "[vsyscall]") continue;
    ByteVector code(mapping.end - mapping.begin);
    if (!read_any_memory(process, mapping.begin, code)) continue;
    const std::size_t at = find_call_instruction(code);
    if (at != std::string::npos) return mapping.begin + at;
  }
  return fail(Code::io, fmt::format("process {} has no code with a system call in it", process));
}

}  // namespace diapause::process
