// Dumps and restores shared memory of System V: the segments of the job's IPC namespace, with the ids by which
// programs know them.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::uint32_t kIsToGo = 01000;  // SHM_DEST of shm_perm.mode: the segment ends with its last process

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Asks for the key, mode and size of a segment through the first process of the job, as every process of it can.
Status look_at_segment(DumpWork& work, SharedMemory& memory) {
  FrozenProcess& asked = work.frozen.processes().front();
  const std::uint64_t room = asked.calls->room();
  auto done = asked.calls->one(asked.leader().name, {SYS_shmctl, {memory.id, IPC_STAT, room}, 0});
  if (!done) {
    work.refuse(asked.status, fmt::format("shares the System V segment {}, which cannot be asked for: {}", memory.id,
                                          done.error().message));
    return {};
  }
  shmid_ds found{};
  DIAPAUSE_TRY(read_memory(asked.here, room, std::as_writable_bytes(std::span(&found, 1))));
  memory.key = static_cast<std::uint32_t>(found.shm_perm.__key);
  memory.mode = found.shm_perm.mode;
  memory.bytes = found.shm_segsz;
  return {};
}

// Refuses other objects of System V: semaphores, message queues, and segments that no process has attached. They
// belong to the job's namespace and to no process.
Status look_at_other_objects(DumpWork& work) {
  FrozenProcess& asked = work.frozen.processes().front();
  const std::uint64_t room = asked.calls->room();
  const auto ask = [&](const Call& call, auto& found) -> Status {
    DIAPAUSE_TRY(asked.calls->one(asked.leader().name, call));
    return read_memory(asked.here, room, std::as_writable_bytes(std::span(&found, 1)));
  };
  seminfo semaphores{};
  msginfo queues{};
  shm_info segments{};
  DIAPAUSE_TRY(ask({SYS_semctl, {0, 0, SEM_INFO, room}, 0}, semaphores));
  DIAPAUSE_TRY(ask({SYS_msgctl, {0, MSG_INFO, room}, 0}, queues));
  DIAPAUSE_TRY(ask({SYS_shmctl, {0, SHM_INFO, room}, 0}, segments));
  const auto attached = std::ranges::count(work.result.job.memories, SharedKind::system_v, &SharedMemory::kind);
  const auto refuse = [&](std::int64_t count, const char* what) {
    if (count > 0) work.refuse(asked.status, fmt::format("and its job have {} {}, see ipcs", count, what));
  };
  refuse(semaphores.semusz, "sets of semaphores of System V");
  refuse(queues.msgpool, "message queues of System V");
  refuse(segments.used_ids - attached, "segments of System V that no process has attached");
  return {};
}

Status write_next_id(const RestoreWork& work, const ThreadName& keeper, std::uint32_t id) {
  const std::string path = "/proc/sys/kernel/shm_next_id";
  const std::string text = std::to_string(id);
  const auto at_cwd = static_cast<std::uint64_t>(AT_FDCWD);
  const std::uint64_t room = work.calls.room();
  ByteVector argument(path.size() + 1);
  std::memcpy(argument.data(), path.data(), path.size());
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t file,
                      call_with(work, keeper, argument, {SYS_openat, {at_cwd, room, O_WRONLY}, 0}));
  const auto written = call_with(work, keeper, as_byte_view(text), {SYS_write, {file, room, text.size()}, 0});
  DIAPAUSE_TRY(work.calls.one(keeper, {SYS_close, {file}, 0}));
  DIAPAUSE_TRY(written);
  return {};
}

}  // namespace

Status look_at_segments(DumpWork& work) {
  Job& job = work.result.job;
  for (SharedMemory& memory : job.memories) {
    if (memory.kind == SharedKind::system_v) DIAPAUSE_TRY(look_at_segment(work, memory));
  }
  for (const Process& process : job.processes) {
    for (const Area& area : process.areas) {
      if (area.kind != AreaKind::shared || job.memories[area.shared].kind != SharedKind::system_v) continue;
      const bool is_whole = area.offset == 0 && area.end - area.begin == whole_pages(job.memories[area.shared].bytes);
      if (is_whole) continue;
      const auto status = std::ranges::find(work.frozen.processes(), process.id,
                                            [](const FrozenProcess& one) { return one.status.id; });
      work.refuse(status->status, fmt::format("has memory at {:#x} of a System V segment, of which other parts are "
                                              "mapped in another way or not at all",
                                              area.begin));
    }
  }
  return look_at_other_objects(work);
}

Status make_segments(const RestoreWork& work, const ThreadName& keeper) {
  for (const SharedMemory& memory : work.job.memories) {
    if (memory.kind != SharedKind::system_v) continue;
    DIAPAUSE_TRY(write_next_id(work, keeper, memory.id));
    const std::uint64_t flags = IPC_CREAT | IPC_EXCL | (memory.mode & 0777);
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t id,
                        work.calls.one(keeper, {SYS_shmget, {memory.key, memory.bytes, flags}, 0}));
    if (id == memory.id) continue;
    return fail(Code::mismatch, fmt::format("the kernel gives System V segment {} the id {}", memory.id, id));
  }
  return {};
}

Status forget_segments(const RestoreWork& work, const ThreadName& keeper) {
  for (const SharedMemory& memory : work.job.memories) {
    if (memory.kind != SharedKind::system_v || (memory.mode & kIsToGo) == 0) continue;
    DIAPAUSE_TRY(work.calls.one(keeper, {SYS_shmctl, {memory.id, IPC_RMID, 0}, 0}));
  }
  return {};
}

}  // namespace diapause::process
