// Dumps and restores who gets a signal when an open file can be read or written (O_ASYNC).
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

struct Owner {  // struct f_owner_ex
  std::uint32_t kind = 0, id = 0;
};

}  // namespace

// The ids are those by which the process itself knows the owners, so it must ask.
Status dump_signal_owners(DumpWork& work, const FrozenProcess& frozen, const Process& process) {
  Job& job = work.result.job;
  for (const Descriptor& one : process.descriptors) {
    const bool is_known = std::ranges::find(job.owners, one.description,
                                            &SignalOwner::description) != job.owners.end();
    const Description& description = job.descriptions[one.description];
    const bool is_ours = description.kind == DescriptionKind::standard;
    if (is_known || is_ours || (description.flags & O_ASYNC) == 0) continue;
    const std::uint64_t room = frozen.calls->room();
    std::vector<Call> calls = {{SYS_fcntl, {one.number, F_GETOWN_EX, room}, 0},
                               {SYS_fcntl, {one.number, F_GETSIG}, 0}};
    DIAPAUSE_TRY(frozen.calls->run(frozen.leader().name, calls));
    Owner owner;
    DIAPAUSE_TRY(read_memory(frozen.here, room, std::as_writable_bytes(std::span(&owner, 1))));
    job.owners.push_back(
        {one.description, owner.kind, owner.id, static_cast<std::uint32_t>(calls[1].result)});
  }
  return {};
}

// All processes and threads must exist.
Status restore_signal_owners(const RestoreWork& work, const Made& made) {
  for (const SignalOwner& one : work.job.owners) {
    const auto known =
        std::ranges::find(made.stored->descriptors, one.description, &Descriptor::description);
    if (known == made.stored->descriptors.end()) continue;
    const Owner owner{one.kind, one.id};
    const std::uint32_t flags = work.job.descriptions[one.description].flags;
    if (one.id != 0) {
      // The owner may have ended.
      DIAPAUSE_TRY(write_memory(made.leader().here, work.calls.room(), as_byte_view(owner)));
      std::vector<Call> set = {
          {SYS_fcntl | kMayFail, {known->number, F_SETOWN_EX, work.calls.room()}, 0}};
      DIAPAUSE_TRY(work.calls.run(made.leader(), set));
    }
    DIAPAUSE_TRY(
        work.calls.one(made.leader(), {SYS_fcntl, {known->number, F_SETSIG, one.signal}, 0}));
    DIAPAUSE_TRY(work.calls.one(made.leader(), {SYS_fcntl, {known->number, F_SETFL, flags}, 0}));
  }
  return {};
}

}  // namespace diapause::process
