// Dumps the pseudo-terminals of a frozen job. The master end of each must be in the job.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "process/borrowed.hpp"
#include "process/dump_parts.hpp"
#include "process/terminals.hpp"

namespace diapause::process {
namespace {

// These are the controlling terminal of a process, and the process group in the foreground there by
// its id in the PID namespace of this process.
struct Control {
  dev_t device = 0;
  std::uint64_t group_here = 0;
};

Result<Control> control_of(pid_t here) {
  DIAPAUSE_TRY_ASSIGN(const StatFields stat, StatFields::of(here));
  constexpr std::size_t kDevice = 7, kForeground = 8;
  const std::uint64_t number = stat.number(kDevice);
  const auto minor_part = static_cast<unsigned>((number & 0xff) | (number >> 12 & 0xfff00));
  return Control{makedev(static_cast<unsigned>(number >> 8 & 0xfff), minor_part),
                 stat.number(kForeground)};
}

// Returns the id by which the job knows a process group, or 0 if no process of the group runs.
Result<std::uint32_t> group_of_job(const DumpWork& work, std::uint64_t group_here) {
  for (const FrozenProcess& one : work.frozen.processes()) {
    constexpr std::size_t kGroup = 5;
    DIAPAUSE_TRY_ASSIGN(const StatFields stat, StatFields::of(one.here));
    if (stat.number(kGroup) == group_here) return one.status.group;
  }
  return 0;
}

Status find_session(const DumpWork& work, std::uint32_t number, Terminal& terminal) {
  constexpr unsigned kFirst = 136;
  for (const FrozenProcess& one : work.frozen.processes()) {
    DIAPAUSE_TRY_ASSIGN(const Control control, control_of(one.here));
    if (control.device != makedev(kFirst, number)) continue;
    terminal.session = one.status.session;
    DIAPAUSE_TRY_ASSIGN(terminal.group, group_of_job(work, control.group_here));
    return {};
  }
  return {};
}

}  // namespace

Status look_at_terminals(DumpWork& work) {
  for (std::size_t i = 0; i < work.terminals.size(); ++i) {
    const DumpWork::SeenTerminal& seen = work.terminals[i];
    const auto refuse_for_now = [&](const std::string& why) {
      work.refuse_for_now(seen.status, "has " + seen.place + why);
    };
    if (seen.master_here == 0) {
      work.refuse(seen.status,
                  "has " + seen.place + ", a terminal whose other end is outside of the job");
      continue;
    }
    DIAPAUSE_TRY_ASSIGN(const Borrowed master, Borrowed::of(seen.master_here, seen.master_number));
    Terminal& terminal = work.result.job.terminals[i];
    DIAPAUSE_TRY_ASSIGN(terminal, look_at_terminal(master.number()));
    DIAPAUSE_TRY(find_session(work, seen.number, terminal));
    int waiting = 0;
    if (!terminal.has_packets) continue;
    if (::ioctl(master.number(), FIONREAD, &waiting) == 0 && waiting > 0) {
      refuse_for_now(
          ", a terminal that works with packets, in which some wait to be read: try again");
    }
    if (seen.here == 0) continue;
    DIAPAUSE_TRY_ASSIGN(const Borrowed end, Borrowed::of(seen.here, seen.descriptor));
    if (::ioctl(end.number(), FIONREAD, &waiting) == 0 && waiting > 0) {
      refuse_for_now(
          ", a terminal that works with packets, with input that no program has read yet: try "
          "again");
    }
  }
  return {};
}

Status take_down_terminals(DumpWork& work) {
  for (std::size_t i = 0; i < work.terminals.size(); ++i) {
    Terminal& terminal = work.result.job.terminals[i];
    if (terminal.has_packets) continue;
    DIAPAUSE_TRY_ASSIGN(const Borrowed master, Borrowed::of(work.terminals[i].master_here,
                                                            work.terminals[i].master_number));
    const bool has_program = !terminal.is_hung_up && work.terminals[i].here != 0;
    DIAPAUSE_TRY_ASSIGN(
        Unread unread, take_unread(master.number(),
                                   has_program ? TerminalInput::is_taken : TerminalInput::is_left));
    terminal.output = std::move(unread.output);
    for (TypedInput& one : unread.typed) {
      one.terminal = static_cast<std::uint32_t>(i);
      work.result.job.typed.push_back(std::move(one));
    }
  }
  return {};
}

}  // namespace diapause::process
