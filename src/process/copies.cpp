#include "process/copies.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace diapause::process {
namespace {

// Makes a child of a stopped process. The child is stopped as well.
Result<ThreadName> make_child(const Calls& calls, const ThreadName& parent, std::uint64_t flags) {
  DIAPAUSE_TRY_ASSIGN(const Calls::Birth born, calls.birth(parent, {SYS_clone, {flags}, 0}));
  return ThreadName{born.here, born.id, born.id};
}

// Gives advice about all extents, also if it fails for some of them.
Status advise(const FrozenProcess& frozen, const std::vector<Extent>& extents, int advice) {
  std::vector<Call> calls;
  calls.reserve(extents.size());
  for (const Extent& one : extents) {
    calls.push_back({SYS_madvise | kMayFail,
                     {one.begin, one.end - one.begin, static_cast<std::uint64_t>(advice)},
                     0});
  }
  DIAPAUSE_TRY(frozen.calls->run(frozen.leader().name, calls));
  for (const Call& call : calls) {
    if (call.result != 0) {
      return fail(os_error(fmt::format("advice about memory at {:#x}", call.arguments[0]),
                           static_cast<int>(-call.result)));
    }
  }
  return {};
}

}  // namespace

// The copy must be a child of process 1. Therefore an aide that shares the memory of the process
// makes the copy and then ends. The process gets no signal when either of them ends.
Status Copies::add(FrozenProcess& frozen) {
  const Calls& calls = *frozen.calls;
  const ThreadName& leader = frozen.leader().name;
  DIAPAUSE_TRY_ASSIGN(const ThreadName aide, make_child(calls, leader, CLONE_VM));
  Result<ThreadName> copy =
      calls.one(aide, {SYS_close_range, {0, ~0u}, 0}).and_then([&](std::uint64_t) {
        return make_child(calls, aide, SIGCHLD);
      });
  if (copy) copies_.push_back({frozen.here, copy->here});
  end_traced(aide.here);
  DIAPAUSE_TRY(calls.one(leader, {SYS_wait4, {aide.process, 0, __WALL, 0}, 0}));
  if (!copy) return fail(std::move(copy.error()));
  DIAPAUSE_TRY(end_with_tracer(copy->here));
  // A session of its own keeps signals to the process group of the original away from the copy.
  return calls.one(*copy, {SYS_setsid, {}, 0}).map([](std::uint64_t) {});
}

// The kernel copies no tables for memory that a fork leaves out. That is undone in any case,
// because the program may fork later.
Status Copies::add(FrozenProcess& frozen, const std::vector<Extent>& spared) {
  (void)advise(frozen, spared, MADV_DONTFORK);  // where that fails, the copy has the memory
  Status added = add(frozen);
  DIAPAUSE_TRY(advise(frozen, spared, MADV_DOFORK));
  return added;
}

Result<Copies> Copies::make(FrozenJob& frozen, const Spared& spared) {
  Copies copies;
  for (FrozenProcess& process : frozen.processes()) {
    DIAPAUSE_TRY(frozen.plant(process));
    const auto of_process = spared.find(process.here);
    Status added = copies.add(
        process, of_process == spared.end() ? std::vector<Extent>{} : of_process->second);
    if (added) continue;
    added.error().message = fmt::format("process {} ({}) cannot be copied: {}", process.status.id,
                                        process.status.name, added.error().message);
    return fail(std::move(added.error()));
  }
  return copies;
}

Copies::~Copies() {
  for (const Copy& copy : copies_) end_traced(copy.here);
}

Status Copies::confirm(const Foresight& foresight) const {
  for (const Copy& copy : copies_) DIAPAUSE_TRY(foresight.confirm(copy.original, copy.here));
  return {};
}

// The copies are read as a debugger reads: process_vm_readv would first give a copy a page of its
// own for each page that it shares with the process.
void Copies::redirect(Dump& dump) const {
  for (Contents& contents : dump.contents) {
    const auto copy = std::ranges::find(copies_, contents.here, &Copy::original);
    if (!contents.is_forked || copy == copies_.end()) continue;
    contents.here = copy->here;
    contents.is_forced = true;
  }
}

}  // namespace diapause::process
