// Dumps and restores semaphores and message queues of System V. They belong to the IPC namespace of
// the job and to no process, so the first process is asked for them, and process 1 makes them
// again.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::uint32_t kRights = 0777;

template <class T>
Result<T> read_room(const FrozenProcess& asked) {
  T found{};
  DIAPAUSE_TRY(
      read_memory(asked.here, asked.calls->room(), std::as_writable_bytes(std::span(&found, 1))));
  return found;
}

Status dump_semaphores(const FrozenProcess& asked, std::uint32_t id, SemaphoreSet& to) {
  DIAPAUSE_TRY_ASSIGN(const auto found, read_room<semid_ds>(asked));
  to.id = id;
  to.key = static_cast<std::uint32_t>(found.sem_perm.__key);
  to.mode = found.sem_perm.mode & kRights;
  std::vector<std::uint16_t> values(found.sem_nsems);
  if (values.size() * sizeof(std::uint16_t) > Calls::room_bytes()) {
    return fail(Code::argument,
                fmt::format("the set of semaphores {} has {} of them: only {} are stored", id,
                            values.size(), Calls::room_bytes() / sizeof(std::uint16_t)));
  }
  DIAPAUSE_TRY(
      asked.calls->one(asked.leader().name, {SYS_semctl, {id, 0, GETALL, asked.calls->room()}, 0}));
  DIAPAUSE_TRY(
      read_memory(asked.here, asked.calls->room(), std::as_writable_bytes(std::span(values))));
  to.values.assign(values.begin(), values.end());
  return {};
}

// Reads the messages of a queue in their order, and leaves them there.
Status dump_messages(const FrozenProcess& asked, MessageQueue& to) {
  const std::uint64_t room = asked.calls->room(),
                      most_bytes = Calls::room_bytes() - sizeof(std::uint64_t);
  for (std::uint64_t i = 0;; ++i) {
    const Call copy{SYS_msgrcv, {to.id, room, most_bytes, i, MSG_COPY | IPC_NOWAIT}, 0};
    auto bytes = asked.calls->one(asked.leader().name, copy);
    if (!bytes && bytes.error().os_errno == ENOMSG) return {};
    if (!bytes && bytes.error().os_errno == E2BIG) {
      return fail(
          Code::argument,
          fmt::format("the message queue {} of System V holds a message of more than {} bytes: "
                      "that is not stored",
                      to.id, most_bytes));
    }
    if (!bytes) return fail(std::move(bytes.error()));
    Message& message = to.messages.emplace_back();
    DIAPAUSE_TRY(
        read_memory(asked.here, room, std::as_writable_bytes(std::span(&message.type, 1))));
    message.bytes.resize(*bytes);
    if (*bytes > 0)
      DIAPAUSE_TRY(read_memory(asked.here, room + sizeof message.type, message.bytes));
  }
}

Status dump_queue(const FrozenProcess& asked, std::uint32_t id, MessageQueue& to) {
  DIAPAUSE_TRY_ASSIGN(const auto found, read_room<msqid_ds>(asked));
  to.id = id;
  to.key = static_cast<std::uint32_t>(found.msg_perm.__key);
  to.mode = found.msg_perm.mode & kRights;
  to.most_bytes = found.msg_qbytes;
  return dump_messages(asked, to);
}

Status check_id(const char* what, std::uint32_t id, std::uint64_t made) {
  if (made == id) return {};
  return fail(Code::mismatch,
              fmt::format("the kernel gives {} {} of System V the id {}", what, id, made));
}

Status make_semaphores(const RestoreWork& work, const ThreadName& keeper, const SemaphoreSet& set) {
  DIAPAUSE_TRY(write_next_id(work, keeper, {"/proc/sys/kernel/sem_next_id", set.id}));
  const std::uint64_t flags = IPC_CREAT | IPC_EXCL | set.mode;
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t id,
                      work.calls.one(keeper, {SYS_semget, {set.key, set.values.size(), flags}, 0}));
  DIAPAUSE_TRY(check_id("the semaphores", set.id, id));
  const std::vector<std::uint16_t> values(set.values.begin(), set.values.end());
  const Call fill{SYS_semctl, {set.id, 0, SETALL, work.calls.room()}, 0};
  return call_with(work, keeper, std::as_bytes(std::span(values)), fill).map([](std::uint64_t) {});
}

Status send_message(const RestoreWork& work, const ThreadName& keeper, std::uint32_t queue,
                    const Message& message) {
  ByteVector argument(sizeof message.type + message.bytes.size());
  std::memcpy(argument.data(), &message.type, sizeof message.type);
  if (!message.bytes.empty()) {
    std::memcpy(argument.data() + sizeof message.type, message.bytes.data(), message.bytes.size());
  }
  const Call send{SYS_msgsnd, {queue, work.calls.room(), message.bytes.size(), IPC_NOWAIT}, 0};
  return call_with(work, keeper, argument, send).map([](std::uint64_t) {});
}

Status make_queue(const RestoreWork& work, const ThreadName& keeper, const MessageQueue& queue) {
  DIAPAUSE_TRY(write_next_id(work, keeper, {"/proc/sys/kernel/msg_next_id", queue.id}));
  const std::uint64_t flags = IPC_CREAT | IPC_EXCL | queue.mode;
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t id,
                      work.calls.one(keeper, {SYS_msgget, {queue.key, flags}, 0}));
  DIAPAUSE_TRY(check_id("the message queue", queue.id, id));
  const std::uint64_t room = work.calls.room();
  DIAPAUSE_TRY(work.calls.one(keeper, {SYS_msgctl, {queue.id, IPC_STAT, room}, 0}));
  msqid_ds settings{};
  DIAPAUSE_TRY(read_memory(keeper.here, room, std::as_writable_bytes(std::span(&settings, 1))));
  settings.msg_qbytes = queue.most_bytes;
  DIAPAUSE_TRY(
      call_with(work, keeper, as_byte_view(settings), {SYS_msgctl, {queue.id, IPC_SET, room}, 0}));
  for (const Message& one : queue.messages) DIAPAUSE_TRY(send_message(work, keeper, queue.id, one));
  return {};
}

}  // namespace

Status dump_system_v(DumpWork& work) {
  const FrozenProcess& asked = work.frozen.processes().front();
  const ThreadName& thread = asked.leader().name;
  const std::uint64_t room = asked.calls->room();
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t last_set,
                      asked.calls->one(thread, {SYS_semctl, {0, 0, SEM_INFO, room}, 0}));
  for (std::uint64_t index = 0; index <= last_set; ++index) {
    const auto id = asked.calls->one(thread, {SYS_semctl, {index, 0, SEM_STAT, room}, 0});
    if (!id) continue;  // there is none at this place
    DIAPAUSE_TRY(dump_semaphores(asked, static_cast<std::uint32_t>(*id),
                                 work.result.job.semaphores.emplace_back()));
  }
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t last_queue,
                      asked.calls->one(thread, {SYS_msgctl, {0, MSG_INFO, room}, 0}));
  for (std::uint64_t index = 0; index <= last_queue; ++index) {
    const auto id = asked.calls->one(thread, {SYS_msgctl, {index, MSG_STAT, room}, 0});
    if (!id) continue;
    DIAPAUSE_TRY(
        dump_queue(asked, static_cast<std::uint32_t>(*id), work.result.job.queues.emplace_back()));
  }
  return {};
}

Status write_next_id(const RestoreWork& work, const ThreadName& keeper, const NextId& next) {
  const std::string text = std::to_string(next.id);
  const auto at_cwd = static_cast<std::uint64_t>(AT_FDCWD);
  const std::uint64_t room = work.calls.room();
  ByteVector path(std::strlen(next.file) + 1);
  std::memcpy(path.data(), next.file, path.size());
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t file,
                      call_with(work, keeper, path, {SYS_openat, {at_cwd, room, O_WRONLY}, 0}));
  const auto written =
      call_with(work, keeper, as_byte_view(text), {SYS_write, {file, room, text.size()}, 0});
  DIAPAUSE_TRY(work.calls.one(keeper, {SYS_close, {file}, 0}));
  DIAPAUSE_TRY(written);
  return {};
}

Status make_system_v(const RestoreWork& work, const ThreadName& keeper) {
  for (const SemaphoreSet& one : work.job.semaphores)
    DIAPAUSE_TRY(make_semaphores(work, keeper, one));
  for (const MessageQueue& one : work.job.queues) DIAPAUSE_TRY(make_queue(work, keeper, one));
  return {};
}

}  // namespace diapause::process
