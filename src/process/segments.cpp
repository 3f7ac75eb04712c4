// Dumps and restores shared memory of System V: the segments of the job's IPC namespace, with the
// ids by which programs know them.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "process/dump_parts.hpp"
#include "process/holes.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::uint32_t kIsToGo =
    01000;  // SHM_DEST of shm_perm.mode: the segment ends with its last process

// Asks for the key, mode and size of a segment through the first process of the job, as every
// process of it can.
Status look_at_segment(DumpWork& work, SharedMemory& memory) {
  FrozenProcess& asked = work.frozen.processes().front();
  const std::uint64_t room = asked.calls->room();
  auto done = asked.calls->one(asked.leader().name, {SYS_shmctl, {memory.id, IPC_STAT, room}, 0});
  if (!done) {
    work.refuse(asked.status,
                fmt::format("shares the System V segment {}, which cannot be asked for: {}",
                            memory.id, done.error().message));
    return {};
  }
  shmid_ds found{};
  DIAPAUSE_TRY(read_memory(asked.here, room, std::as_writable_bytes(std::span(&found, 1))));
  memory.key = static_cast<std::uint32_t>(found.shm_perm.__key);
  memory.mode = found.shm_perm.mode;
  memory.bytes = found.shm_segsz;
  return {};
}

// Returns the runs of pages of an attached segment that hold something, or may do so.
std::vector<Extent> segment_extents(const FrozenProcess& frozen, const Extent& range) {
  const auto mappings = places_of(frozen.here);
  if (!mappings) return {range};
  const auto own = std::ranges::find(*mappings, range.begin, &Mapping::begin);
  if (own == mappings->end() || !is_of_no_file_system(*own)) return {range};
  return pages_of_shared_memory(frozen, *own, range).value_or(std::vector<Extent>{range});
}

// Reads a segment through the first process of the job, which attaches it for that time.
Status dump_unattached(DumpWork& work, std::uint32_t id, const shmid_ds& found) {
  FrozenProcess& asked = work.frozen.processes().front();
  const ThreadName& thread = asked.leader().name;
  SharedMemory memory{
      SharedKind::system_v, "", found.shm_segsz, found.shm_perm.mode, 0, id, true, true};
  memory.key = static_cast<std::uint32_t>(found.shm_perm.__key);
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t at,
                      asked.calls->one(thread, {SYS_shmat, {id, 0, SHM_RDONLY}, 0}));
  const auto index = static_cast<std::uint32_t>(work.result.job.memories.size());
  Status read;
  for (const Extent& one :
       segment_extents(asked, {at, at + round_up(found.shm_segsz, kPageBytes)})) {
    ByteVector bytes(one.end - one.begin);
    read = read_memory(asked.here, one.begin, bytes);
    if (!read) break;
    Contents contents{asked.here, 0, bytes.size(), 0, index, one.begin - at};
    contents.read = std::move(bytes);
    work.result.contents.push_back(std::move(contents));
  }
  DIAPAUSE_TRY(asked.calls->one(thread, {SYS_shmdt, {at}, 0}));
  DIAPAUSE_TRY(read);
  work.result.job.memories.push_back(std::move(memory));
  return {};
}

// Finds the segments that no process has attached. They belong to the namespace of the job alone.
Status dump_unattached_segments(DumpWork& work) {
  FrozenProcess& asked = work.frozen.processes().front();
  const std::uint64_t room = asked.calls->room();
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t last,
                      asked.calls->one(asked.leader().name, {SYS_shmctl, {0, SHM_INFO, room}, 0}));
  for (std::uint64_t index = 0; index <= last; ++index) {
    const auto id = asked.calls->one(asked.leader().name, {SYS_shmctl, {index, SHM_STAT, room}, 0});
    if (!id) continue;  // there is none at this place
    shmid_ds found{};
    DIAPAUSE_TRY(read_memory(asked.here, room, std::as_writable_bytes(std::span(&found, 1))));
    if (found.shm_nattch == 0)
      DIAPAUSE_TRY(dump_unattached(work, static_cast<std::uint32_t>(*id), found));
  }
  return {};
}

// Fills the segments that no process of the job has attached, through process 1.
Status fill_unattached(RestoreWork& work, const ThreadName& keeper, std::uint32_t index) {
  const SharedMemory& memory = work.job.memories[index];
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t at,
                      work.calls.one(keeper, {SYS_shmat, {memory.id, 0, 0}, 0}));
  const auto write = [&](const StoredContents& one, std::uint64_t offset, ByteView bytes) {
    return write_memory(keeper.here, at + one.offset + offset, bytes);
  };
  DIAPAUSE_TRY(work.read(contents_of_memory(work, index), write));
  return work.calls.one(keeper, {SYS_shmdt, {at}, 0}).map([](std::uint64_t) {});
}

}  // namespace

Status look_at_segments(DumpWork& work) {
  Job& job = work.result.job;
  for (SharedMemory& memory : job.memories) {
    if (memory.kind == SharedKind::system_v) DIAPAUSE_TRY(look_at_segment(work, memory));
  }
  for (const Process& process : job.processes) {
    for (const Area& area : process.areas) {
      if (area.kind != AreaKind::shared || job.memories[area.shared].kind != SharedKind::system_v)
        continue;
      const bool is_whole =
          area.offset == 0 &&
          area.end - area.begin == round_up(job.memories[area.shared].bytes, kPageBytes);
      if (is_whole) continue;
      const auto status = std::ranges::find(work.frozen.processes(), process.id,
                                            [](const FrozenProcess& one) { return one.status.id; });
      work.refuse(status->status,
                  fmt::format("has memory at {:#x} of a System V segment, of which other parts are "
                              "mapped in another way or not at all",
                              area.begin));
    }
  }
  return dump_unattached_segments(work);
}

Status make_segments(const RestoreWork& work, const ThreadName& keeper) {
  for (const SharedMemory& memory : work.job.memories) {
    if (memory.kind != SharedKind::system_v) continue;
    DIAPAUSE_TRY(write_next_id(work, keeper, {"/proc/sys/kernel/shm_next_id", memory.id}));
    const std::uint64_t flags = IPC_CREAT | IPC_EXCL | (memory.mode & 0777);
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t id,
                        work.calls.one(keeper, {SYS_shmget, {memory.key, memory.bytes, flags}, 0}));
    if (id == memory.id) continue;
    return fail(Code::mismatch,
                fmt::format("the kernel gives System V segment {} the id {}", memory.id, id));
  }
  return {};
}

Status forget_segments(RestoreWork& work, const ThreadName& keeper) {
  for (std::uint32_t i = 0; i < work.job.memories.size(); ++i) {
    const bool is_empty = work.job.memories[i].kind == SharedKind::system_v && !work.filled[i];
    if (is_empty) DIAPAUSE_TRY(fill_unattached(work, keeper, i));
  }
  for (const SharedMemory& memory : work.job.memories) {
    if (memory.kind != SharedKind::system_v || (memory.mode & kIsToGo) == 0) continue;
    DIAPAUSE_TRY(work.calls.one(keeper, {SYS_shmctl, {memory.id, IPC_RMID, 0}, 0}));
  }
  return {};
}

}  // namespace diapause::process
