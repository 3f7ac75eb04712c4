// Dumps and restores what a process may do beside its capabilities, and the barriers that it has
// registered for.
#include <fmt/core.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kCapabilities = 64;
constexpr std::uint64_t kGetRegistrations =
    512;  // MEMBARRIER_CMD_GET_REGISTRATIONS, since Linux 6.3

bool has(std::uint64_t set, std::uint64_t number) { return (set >> number & 1) != 0; }

const Privileges* privileges_of(const Job& job, std::uint32_t process) {
  const auto known = std::ranges::find(job.privileges, process, &Privileges::process);
  return known == job.privileges.end() ? nullptr : &*known;
}

// Privileges that are lost are reported when the restart has succeeded.
Status run_and_tell(RestoreWork& work, const ThreadName& thread, std::vector<Call>& calls,
                    const std::string& what) {
  DIAPAUSE_TRY(work.calls.run(thread, calls));
  const bool is_lost = std::ranges::any_of(calls, [](const Call& call) { return call.result < 0; });
  if (is_lost) work.lost[what].push_back(thread.thread);
  return {};
}

}  // namespace

Status dump_privileges(DumpWork& work, const FrozenProcess& frozen) {
  std::vector<Call> calls = {{SYS_prctl, {PR_GET_SECUREBITS}, 0},
                             {SYS_membarrier | kMayFail, {kGetRegistrations, 0}, 0}};
  DIAPAUSE_TRY(frozen.calls->run(frozen.leader().name, calls));
  Privileges own;
  own.process = frozen.status.id;
  own.secure_bits = static_cast<std::uint32_t>(calls[0].result);
  own.bounding = frozen.status.bounding;
  own.ambient = frozen.status.ambient;
  // A kernel that does not tell may have registered it for the barriers that programs use.
  constexpr std::uint32_t kUsual = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  own.barriers = calls[1].result < 0 ? kUsual : static_cast<std::uint32_t>(calls[1].result);
  work.result.job.privileges.push_back(own);
  return {};
}

Status restore_barriers(const RestoreWork& work, const Made& made) {
  const Privileges* const own = privileges_of(work.job, made.stored->id);
  if (own == nullptr) return {};
  std::vector<Call> calls;
  for (std::uint64_t bit = 0; bit < 32; ++bit) {
    if (has(own->barriers, bit))
      calls.push_back({SYS_membarrier | kMayFail, {std::uint64_t{1} << bit, 0}, 0});
  }
  return work.calls.run(made.leader(), calls);
}

Status restore_limits_of_capabilities(RestoreWork& work, const Made& made) {
  const Privileges* const own = privileges_of(work.job, made.stored->id);
  if (own == nullptr) return {};
  for (const ThreadName& thread : made.threads) {
    DIAPAUSE_TRY_ASSIGN(const ProcStatus now, status_of(fmt::format("/proc/{}", thread.here)));
    std::vector<Call> calls;
    for (std::uint64_t i = 0; i < kCapabilities; ++i) {
      const bool is_to_go = has(now.bounding, i) && !has(own->bounding, i);
      if (is_to_go) calls.push_back({SYS_prctl | kMayFail, {PR_CAPBSET_DROP, i}, 0});
    }
    if (own->secure_bits != 0)
      calls.push_back({SYS_prctl | kMayFail, {PR_SET_SECUREBITS, own->secure_bits}, 0});
    DIAPAUSE_TRY(run_and_tell(work, thread, calls,
                              "its bounding capabilities or securebits (see capabilities(7))"));
  }
  return {};
}

Status restore_ambient_capabilities(RestoreWork& work, const Made& made) {
  const Privileges* const own = privileges_of(work.job, made.stored->id);
  if (own == nullptr || own->ambient == 0) return {};
  for (const ThreadName& thread : made.threads) {
    std::vector<Call> calls;
    for (std::uint64_t i = 0; i < kCapabilities; ++i) {
      if (!has(own->ambient, i)) continue;
      calls.push_back({SYS_prctl | kMayFail, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0}, 0});
    }
    DIAPAUSE_TRY(run_and_tell(work, thread, calls, "its ambient capabilities"));
  }
  return {};
}

}  // namespace diapause::process
