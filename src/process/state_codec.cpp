#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>

#include "format/checksum.hpp"
#include "format/wire.hpp"
#include "process/state.hpp"

namespace diapause::process {
namespace {

constexpr char kMagic[8] = {'D', 'I', 'A', 'P', 'P', 'R', 'O', 'C'};
constexpr std::uint64_t kHeadBytes = 24;  // magic, format version, unused word, length
constexpr std::uint64_t kDigestBytes = 16;
constexpr std::uint64_t kMostTextBytes = 1 << 20;
constexpr std::size_t kMostHostBytes = 45;  // of an address of IPv6 as text
constexpr std::uint32_t kMostSignal = 64;
constexpr std::uint64_t kAddressSpaceEnd = std::uint64_t{1} << 57;

// These functions list the fields of every structure in the order in which they are stored, once
// for both directions.
template <class A>
void fields(A& a, Area& x) {
  a(x.begin, x.end, x.protection, x.kind, x.flags, x.shared, x.offset, x.name, x.checksum);
}
template <class A>
void fields(A& a, SharedMemory& x) {
  a(x.kind, x.path, x.bytes, x.mode, x.key, x.id, x.is_stored, x.is_writable);
}
template <class A>
void fields(A& a, SignalAction& x) {
  a(x.handler, x.flags, x.restorer, x.mask);
}
template <class A>
void fields(A& a, Thread& x) {
  a(x.id, x.name, x.registers, x.extended_registers, x.signal_mask, x.robust_list,
    x.robust_list_bytes);
  a(x.cleared_address, x.sequence_address, x.sequence_bytes, x.sequence_signature,
    x.sequence_section);
  a(x.stack_address, x.stack_bytes, x.stack_flags, x.waiting_signals, x.timed_call, x.left_ns);
}
template <class A>
void fields(A& a, MemoryMap& x) {
  a(x.start_code, x.end_code, x.start_data, x.end_data, x.start_brk, x.brk, x.start_stack);
  a(x.arg_start, x.arg_end, x.env_start, x.env_end, x.auxiliary);
}
template <class A>
void fields(A& a, Limit& x) {
  a(x.soft, x.hard);
}
template <class A>
void fields(A& a, Interval& x) {
  a(x.left_us, x.period_us);
}
template <class A>
void fields(A& a, Descriptor& x) {
  a(x.number, x.description, x.closes_on_exec);
}
template <class A>
void fields(A& a, Process& x) {
  a(x.id, x.parent, x.group, x.session, x.has_ended, x.exit_status, x.program, x.directory, x.mask,
    x.personality);
  a(x.death_signal, x.dumpable, x.no_new_privileges, x.subreaper, x.inheritable, x.permitted,
    x.effective);
  a(x.threads, x.areas, x.map, x.actions, x.limits, x.intervals, x.waiting_signals, x.descriptors);
}
template <class A>
void fields(A& a, Watched& x) {
  a(x.number, x.events, x.data);
}
template <class A>
void fields(A& a, Description& x) {
  a(x.kind, x.flags, x.path, x.offset, x.bytes, x.which, x.count, x.is_semaphore, x.is_write_end);
  a(x.left_ns, x.period_ns, x.watched);
}
template <class A>
void fields(A& a, Channel& x) {
  a(x.capacity_bytes, x.type, x.forward, x.backward);
  if (a.version() >= 2) a(x.path, x.mode);
}
template <class A>
void fields(A& a, SocketOption& x) {
  a(x.level, x.name, x.value);
}
template <class A>
void fields(A& a, Socket& x) {
  a(x.family, x.type, x.protocol, x.state, x.local, x.remote, x.directory, x.mode, x.backlog,
    x.peer);
  a(x.is_read_shut, x.is_write_shut, x.options, x.waiting, x.senders);
}
template <class A>
void fields(A& a, Terminal& x) {
  a(x.settings, x.size, x.is_locked, x.has_packets, x.is_hung_up, x.session, x.group, x.output);
}
template <class A>
void fields(A& a, FileLock& x) {
  a(x.process, x.number, x.kind, x.is_exclusive, x.begin, x.bytes);
}
template <class A>
void fields(A& a, FilePart& x) {
  a(x.memory, x.offset, x.bytes, x.checksum);
}
template <class A>
void fields(A& a, Schedule& x) {
  a(x.thread, x.processors, x.policy, x.niceness, x.io_priority);
}
template <class A>
void fields(A& a, Guard& x) {
  a(x.process, x.begin, x.bytes);
}
template <class A>
void fields(A& a, FarEnd& x) {
  a(x.socket, x.node, x.peer);
}
template <class A>
void fields(A& a, Timer& x) {
  a(x.process, x.number, x.clock, x.notification, x.signal, x.thread, x.value, x.left_ns,
    x.period_ns);
}
template <class A>
void fields(A& a, SemaphoreSet& x) {
  a(x.id, x.key, x.mode, x.values);
}
template <class A>
void fields(A& a, Message& x) {
  a(x.type, x.bytes);
}
template <class A>
void fields(A& a, MessageQueue& x) {
  a(x.id, x.key, x.mode, x.most_bytes, x.messages);
}
template <class A>
void fields(A& a, StoppedProcess& x) {
  a(x.process, x.is_told);
}
template <class A>
void fields(A& a, SignalOwner& x) {
  a(x.description, x.kind, x.id, x.signal);
}
template <class A>
void fields(A& a, Seals& x) {
  a(x.memory, x.seals);
}
template <class A>
void fields(A& a, FileWatch& x) {
  a(x.description, x.number, x.events, x.path);
}
template <class A>
void fields(A& a, TypedInput& x) {
  a(x.terminal, x.is_line, x.bytes);
}
template <class A>
void fields(A& a, Privileges& x) {
  a(x.process, x.secure_bits, x.bounding, x.ambient, x.barriers);
}
template <class A>
void fields(A& a, JobFile& x) {
  a(x.path, x.memory, x.modified_ns);
}
template <class A>
void fields(A& a, EndSignal& x) {
  a(x.process, x.signal);
}
template <class A>
void fields(A& a, RegisterPart& x) {
  a(x.number, x.offset, x.bytes);
}
template <class A>
void fields(A& a, Job& x) {
  a(x.machine, x.command, x.monotonic_ns, x.processes, x.memories, x.descriptions, x.channels);
  if (a.version() >= 2) a(x.sockets, x.terminals);
  if (a.version() >= 3) a(x.locks);
  if (a.version() >= 4) a(x.file_parts);
  if (a.version() >= 5) a(x.schedules, x.guards);
  if (a.version() < 6) return;
  a(x.far_ends, x.timers, x.semaphores, x.queues, x.stopped, x.owners, x.seals, x.watches, x.typed,
    x.privileges);
  if (a.version() >= 7) a(x.addresses);
  if (a.version() >= 8) a(x.unix_ns, x.file_patterns, x.files);
  if (a.version() >= 9) a(x.end_signals);
  if (a.version() >= 10) a(x.instructions, x.register_parts, x.kernel_code, x.since_boot_ns);
}

class Encoder {
 public:
  explicit Encoder(format::Writer& to) : to_(to) {}

  static std::uint32_t version() { return kProcessesFormatVersion; }
  template <class... Fields>
  void operator()(Fields&... each) {
    (one(each), ...);
  }

 private:
  void one(std::uint32_t& value) { to_.u32(value); }
  void one(std::uint64_t& value) { to_.u64(value); }
  void one(std::int64_t& value) { to_.u64(static_cast<std::uint64_t>(value)); }
  void one(bool& value) { to_.u32(value ? 1 : 0); }
  void one(std::string& text) {
    to_.u64(text.size());
    to_.text(text);
  }
  void one(ByteVector& bytes) {
    to_.u64(bytes.size());
    to_.append(bytes);
  }
  template <class T>
  void one(std::vector<T>& items) {
    to_.u64(items.size());
    for (T& item : items) one(item);
  }
  template <class T, std::size_t kCount>
  void one(std::array<T, kCount>& items) {
    for (T& item : items) one(item);
  }
  template <class T>
  void one(T& value) {
    if constexpr (std::is_enum_v<T>) {
      to_.u32(static_cast<std::uint32_t>(value));
    } else {
      fields(*this, value);
    }
  }

  format::Writer& to_;
};

class Decoder {
 public:
  Decoder(format::Reader& from, std::uint32_t version) : from_(from), version_(version) {}

  std::uint32_t version() const { return version_; }
  bool ok() const { return is_sound_ && from_.ok(); }
  template <class... Fields>
  void operator()(Fields&... each) {
    (one(each), ...);
  }

 private:
  void one(std::uint32_t& value) { value = from_.u32(); }
  void one(std::uint64_t& value) { value = from_.u64(); }
  void one(std::int64_t& value) { value = static_cast<std::int64_t>(from_.u64()); }
  void one(bool& value) {
    const std::uint32_t stored = from_.u32();
    is_sound_ = is_sound_ && stored <= 1;
    value = stored == 1;
  }
  void one(std::string& text) {
    const std::uint64_t size = from_.u64();
    is_sound_ = is_sound_ && size <= kMostTextBytes;
    if (is_sound_) text = from_.text(size);
    is_sound_ = is_sound_ && text.find('\0') == std::string::npos;
  }
  void one(ByteVector& bytes) {
    const ByteView view = from_.take(from_.u64());
    bytes.assign(view.begin(), view.end());
  }
  // Every item takes at least four bytes, so a count that does not fit into what follows is
  // refused.
  template <class T>
  void one(std::vector<T>& items) {
    const std::uint64_t count = from_.u64();
    is_sound_ = is_sound_ && from_.has_items(count, 4);
    for (std::uint64_t i = 0; i < count && ok(); ++i) one(items.emplace_back());
  }
  template <class T, std::size_t kCount>
  void one(std::array<T, kCount>& items) {
    for (T& item : items) one(item);
  }
  template <class T>
  void one(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(from_.u32());
    } else {
      fields(*this, value);
    }
  }

  format::Reader& from_;
  std::uint32_t version_;  // version of the format that is read
  bool is_sound_ = true;
};

tl::unexpected<Error> unsound(const std::string& what) {
  return fail(Code::corrupt, "the processes of the image cannot be: " + what);
}

Status check_areas(const Job& job, const Process& process) {
  std::uint64_t end = 0;
  for (const Area& area : process.areas) {
    const bool is_range =
        area.begin < area.end && area.begin % kPageBytes == 0 && area.end % kPageBytes == 0;
    const bool is_foreign = area.kind == AreaKind::foreign;
    if (!is_range || area.begin < end || (!is_foreign && area.end > kAddressSpaceEnd) ||
        area.protection > 7 || area.kind > AreaKind::foreign) {
      return unsound(fmt::format("process {} has memory from {:#x} to {:#x}", process.id,
                                 area.begin, area.end));
    }
    end = area.end;
    const bool is_of_file = area.kind == AreaKind::memory && area.shared != kNone;
    if (area.kind != AreaKind::shared && !is_of_file) continue;
    if (area.shared >= job.memories.size() || area.offset % kPageBytes != 0 ||
        area.offset > format::kMaxFileBytes ||
        job.memories[area.shared].kind == SharedKind::job_file ||
        is_of_file != (job.memories[area.shared].kind == SharedKind::file_pages)) {
      return unsound(fmt::format("process {} shares a memory that is not there", process.id));
    }
  }
  return {};
}

Status check_descriptors(const Job& job, const Process& process) {
  std::set<std::uint32_t> numbers;
  for (const Descriptor& one : process.descriptors) {
    if (one.number >= (1u << 20) || one.description >= job.descriptions.size() ||
        !numbers.insert(one.number).second) {
      return unsound(fmt::format("descriptor {} of process {}", one.number, process.id));
    }
  }
  return {};
}

Status check_process(const Job& job, const Process& process, std::set<std::uint32_t>& ids) {
  constexpr std::uint32_t kMostIds = 1u << 22;
  if (process.threads.empty() || process.threads.front().id != process.id) {
    return unsound(fmt::format("process {} has no leader", process.id));
  }
  // Process 1 belongs to this library and is not stored. Parents come before their children.
  if (process.parent != 1 && !ids.contains(process.parent)) {
    return unsound(fmt::format("process {} has no parent", process.id));
  }
  for (const Thread& thread : process.threads) {
    if (thread.id < 2 || thread.id > kMostIds || !ids.insert(thread.id).second) {
      return unsound(fmt::format("thread {} of process {}", thread.id, process.id));
    }
  }
  DIAPAUSE_TRY(check_areas(job, process));
  return check_descriptors(job, process);
}

std::size_t count_of(const Job& job, DescriptionKind kind) {
  switch (kind) {
    case DescriptionKind::standard:
      return std::size_t{1} << 20;
    case DescriptionKind::pipe:
      return job.channels.size();
    case DescriptionKind::memory:
      return job.memories.size();
    case DescriptionKind::socket:
      return job.sockets.size();
    case DescriptionKind::terminal:
      return job.terminals.size();
    default:
      return ~std::size_t{0};
  }
}

Status check_description(const Job& job, const Description& one) {
  constexpr std::uint32_t kNeverUsed = 9;
  const auto kind = static_cast<std::uint32_t>(one.kind);
  const bool is_one = one.kind <= DescriptionKind::process && kind != kNeverUsed &&
                      one.which < count_of(job, one.kind);
  const bool is_open = is_one && (one.kind != DescriptionKind::memory ||
                                  job.memories[one.which].kind != SharedKind::job_file);
  if (is_open) return {};
  return unsound(fmt::format("an open file of kind {}", kind));
}

// Checks a socket. The kernel refuses what is not checked here when the socket is made.
Status check_socket(const Job& job, std::uint32_t index) {
  constexpr std::size_t kMostAddressBytes = 128;    // sizeof(sockaddr_storage)
  constexpr std::size_t kMostValueBytes = 1 << 15;  // of a filter of 4096 instructions
  const Socket& one = job.sockets[index];
  const bool is_address =
      one.local.size() <= kMostAddressBytes && one.remote.size() <= kMostAddressBytes;
  const bool has_peer = one.peer != kNone;
  const bool is_peer =
      !has_peer || (one.state == SocketState::connected && one.peer < job.sockets.size() &&
                    one.peer != index && job.sockets[one.peer].peer == index &&
                    job.sockets[one.peer].state == SocketState::connected);
  const bool is_option = std::ranges::all_of(one.options, [](const SocketOption& option) {
    return option.value.size() <= kMostValueBytes;
  });
  const bool has_senders = one.senders.empty() || one.senders.size() == one.waiting.size();
  const bool are_addresses = std::ranges::all_of(
      one.senders, [](const ByteVector& sender) { return sender.size() <= kMostAddressBytes; });
  if (is_address && is_peer && is_option && has_senders && are_addresses &&
      one.state <= SocketState::waiting)
    return {};
  return unsound(fmt::format("socket {}", index));
}

// Checks that the parts of a memory do not overlap, so that whoever reads them reads no more than
// the file.
Status check_file_parts(const Job& job) {
  std::vector<std::uint64_t> ends(job.memories.size());
  for (const FilePart& part : job.file_parts) {
    const bool is_one = part.memory < job.memories.size() &&
                        job.memories[part.memory].kind == SharedKind::file_pages &&
                        part.offset >= ends[part.memory] &&
                        part.offset <= job.memories[part.memory].bytes &&
                        part.bytes <= job.memories[part.memory].bytes - part.offset;
    if (!is_one) return unsound("a part of a file");
    ends[part.memory] = part.offset + part.bytes;
  }
  return {};
}

bool is_sound(const SharedMemory& memory) {
  const bool is_found_again = memory.is_stored || memory.path.starts_with('/');
  return memory.kind <= SharedKind::job_file && memory.bytes <= format::kMaxFileBytes &&
         (memory.kind != SharedKind::file_pages || is_found_again);
}

Status check_job_files(const Job& job) {
  const auto is_absolute = [](const std::string& path) { return path.starts_with('/'); };
  if (!std::ranges::all_of(job.file_patterns, is_absolute)) return unsound("a name of its files");
  std::set<std::string_view> paths;
  for (const JobFile& one : job.files) {
    const bool is_elsewhere = one.memory == kNone;
    const bool is_one = is_elsewhere || (one.memory < job.memories.size() &&
                                         job.memories[one.memory].path == one.path &&
                                         (job.memories[one.memory].kind == SharedKind::job_file ||
                                          job.memories[one.memory].kind == SharedKind::file));
    if (!is_one || !is_absolute(one.path) || !paths.insert(one.path).second)
      return unsound("a file that belongs to it");
  }
  return {};
}

bool is_sound(const Schedule& schedule, const std::set<std::uint32_t>& threads) {
  constexpr std::uint32_t kMostNiceness = 40;
  return threads.contains(schedule.thread) && schedule.processors.size() <= kMostProcessorBytes &&
         (schedule.policy.empty() || schedule.policy.size() == kPolicyBytes) &&
         schedule.niceness <= kMostNiceness;
}

bool is_sound(const Guard& guard, const Job& job) {
  const bool is_range = guard.begin % kPageBytes == 0 && guard.bytes % kPageBytes == 0 &&
                        guard.bytes != 0 && guard.begin < kAddressSpaceEnd &&
                        guard.bytes <= kAddressSpaceEnd - guard.begin;
  return is_range &&
         std::ranges::find(job.processes, guard.process, &Process::id) != job.processes.end();
}

bool is_sound(const FarEnd& end, const Job& job) {
  if (end.socket >= job.sockets.size()) return false;
  const Socket& socket = job.sockets[end.socket];
  constexpr std::uint32_t kLocalFamily = 1;  // AF_UNIX
  return socket.state == SocketState::connected && socket.peer == kNone &&
         socket.family != kLocalFamily;
}

Status check_far_ends(const Job& job) {
  std::set<std::uint32_t> sockets;
  for (const FarEnd& one : job.far_ends) {
    if (!is_sound(one, job) || !sockets.insert(one.socket).second)
      return unsound("a connection to another node");
  }
  return {};
}

// Addresses are handed on in lists of words.
bool is_address(const std::string& text) {
  constexpr std::string_view kLetters = "0123456789abcdef.:";
  return !text.empty() && text.size() <= kMostHostBytes &&
         text.find_first_not_of(kLetters) == text.npos;
}

// Checks what names something else of the job by its index or id.
Status check_names(const Job& job) {
  const auto is_process = [&](std::uint32_t id) {
    return std::ranges::find(job.processes, id, &Process::id) != job.processes.end();
  };
  const auto is_child = [&](const EndSignal& one) {
    const auto process = std::ranges::find(job.processes, one.process, &Process::id);
    return process != job.processes.end() && process->parent != 1 && one.signal <= kMostSignal;
  };
  constexpr std::uint32_t kMostKind = 2;  // F_OWNER_PGRP
  constexpr std::uint32_t kMostWatches = 1u << 22;
  const bool is_sound =
      std::ranges::all_of(job.timers, is_process, &Timer::process) &&
      std::ranges::all_of(job.stopped, is_process, &StoppedProcess::process) &&
      std::ranges::all_of(job.privileges, is_process, &Privileges::process) &&
      std::ranges::all_of(job.end_signals, is_child) &&
      std::ranges::all_of(job.owners,
                          [&](const SignalOwner& one) {
                            return one.description < job.descriptions.size() &&
                                   one.kind <= kMostKind;
                          }) &&
      std::ranges::all_of(job.seals,
                          [&](const Seals& one) {
                            return one.memory < job.memories.size() &&
                                   job.memories[one.memory].kind != SharedKind::job_file;
                          }) &&
      std::ranges::all_of(
          job.typed, [&](const TypedInput& one) { return one.terminal < job.terminals.size(); }) &&
      std::ranges::all_of(job.watches, [&](const FileWatch& one) {
        return one.number < kMostWatches && one.description < job.descriptions.size() &&
               job.descriptions[one.description].kind == DescriptionKind::notifications;
      });
  if (!is_sound) return unsound("a part of them that belongs to nothing");
  if (std::ranges::all_of(job.addresses, is_address)) return {};
  return unsound("an address of their node");
}

Status check_job(const Job& job) {
  std::set<std::uint32_t> ids;
  bool has_command = false;
  for (const Process& process : job.processes) {
    DIAPAUSE_TRY(check_process(job, process, ids));
    has_command = has_command || process.id == job.command;
  }
  if (!has_command) return unsound("the command is not among them");
  if (job.kernel_code.size() > kMostTextBytes) return unsound("the kernel's code");
  for (const Description& one : job.descriptions) DIAPAUSE_TRY(check_description(job, one));
  for (std::uint32_t i = 0; i < job.sockets.size(); ++i) DIAPAUSE_TRY(check_socket(job, i));
  for (const SharedMemory& memory : job.memories) {
    if (!is_sound(memory)) return unsound("a shared memory");
  }
  DIAPAUSE_TRY(check_file_parts(job));
  DIAPAUSE_TRY(check_job_files(job));
  for (const FileLock& lock : job.locks) {
    const auto owner = std::ranges::find(job.processes, lock.process, &Process::id);
    const bool has_descriptor = owner != job.processes.end() &&
                                std::ranges::find(owner->descriptors, lock.number,
                                                  &Descriptor::number) != owner->descriptors.end();
    if (!has_descriptor || lock.kind > LockKind::whole_description) return unsound("a lock");
  }
  DIAPAUSE_TRY(check_far_ends(job));
  for (const Guard& one : job.guards) {
    if (!is_sound(one, job)) return unsound(fmt::format("guard pages at {:#x}", one.begin));
  }
  for (const Schedule& one : job.schedules) {
    if (!is_sound(one, ids)) return unsound(fmt::format("the schedule of thread {}", one.thread));
  }
  return check_names(job);
}

}  // namespace

ByteVector encode_job(const Job& job) {
  format::Writer body(4096);
  Encoder encoder(body);
  encoder(const_cast<Job&>(job));  // fields() serves both directions; an Encoder only reads
  format::Writer all(kHeadBytes + body.written().size() + kDigestBytes);
  all.text(std::string_view(kMagic, sizeof kMagic));
  all.u32(kProcessesFormatVersion);
  all.u32(0);
  all.u64(kHeadBytes + body.written().size() + kDigestBytes);
  all.append(body.written());
  all.digest(format::digest128(all.written()));
  return all.take();
}

Result<Job> decode_job(ByteView data) {
  if (data.size() < kHeadBytes + kDigestBytes ||
      std::memcmp(data.data(), kMagic, sizeof kMagic) != 0) {
    return unsound("it does not begin as such");
  }
  format::Reader head(data.subspan(sizeof kMagic));
  const std::uint32_t version = head.u32();
  head.u32();
  const std::uint64_t length = head.u64();
  if (version > kProcessesFormatVersion) {
    return fail(Code::mismatch,
                fmt::format("the processes of the image are stored in format version {}, and this "
                            "program knows {}",
                            version, kProcessesFormatVersion));
  }
  if (version == 0 || length != data.size()) return unsound("its length or version");
  const ByteView digested = data.first(data.size() - kDigestBytes);
  format::Reader tail(data.last(kDigestBytes));
  if (tail.digest() != format::digest128(digested)) return unsound("its checksum");
  format::Reader reader(digested.subspan(kHeadBytes));
  Decoder decoder(reader, version);
  Job job;
  decoder(job);
  if (!decoder.ok() || reader.remaining() != 0) return unsound("its length");
  DIAPAUSE_TRY(check_job(job));
  return job;
}

}  // namespace diapause::process
