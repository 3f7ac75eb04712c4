// Has all of a job that is not the contents of its memory, as plain values: what an image keeps of
// processes, threads, mappings and descriptors. docs/formats/processes.md says how it is stored.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::process {

inline constexpr std::uint32_t kNone = 0xffffffff;

// Says how a range of addresses came to be. The numbers are stored.
enum class AreaKind : std::uint32_t {
  memory = 0,   // memory of the process alone, whatever it was at first; pages of a file where it
                // has not written to them
  shared = 1,   // a range of one of the job's shared memories
  kernel = 2,   // code and data that the kernel gives to every process: vdso, vvar
  foreign = 3,  // at an address that no process can change: vsyscall
};

// These are the bits of Area::flags.
inline constexpr std::uint32_t kGrowsDown = 1;
inline constexpr std::uint32_t kHuge = 2;          // madvise(MADV_HUGEPAGE)
inline constexpr std::uint32_t kNoHuge = 4;        // MADV_NOHUGEPAGE
inline constexpr std::uint32_t kNotForked = 8;     // MADV_DONTFORK
inline constexpr std::uint32_t kWipedByFork = 16;  // MADV_WIPEONFORK
inline constexpr std::uint32_t kNotDumped = 32;    // MADV_DONTDUMP
inline constexpr std::uint32_t kLocked = 64;       // mlock
inline constexpr std::uint32_t kNoReserve = 128;   // MAP_NORESERVE

struct Area {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t protection = 0;  // PROT_READ | PROT_WRITE | PROT_EXEC
  AreaKind kind = AreaKind::memory;
  std::uint32_t flags = 0;
  // It is the index of the shared memory, and for AreaKind::memory that of the pages of a file.
  std::uint32_t shared = kNone;
  std::uint64_t offset = 0;  // place in the file
  std::string name;          // the kernel's name; for AreaKind::kernel, the name that it must have
  std::uint64_t checksum = 0;  // of the vdso's contents; 0 if there is none
};

// Says of which kind memory is that several processes may have, or that has a descriptor.
enum class SharedKind : std::uint32_t {
  anonymous = 0,  // without a name: of MAP_SHARED | MAP_ANONYMOUS, or of memfd_create
  file = 1,  // a file that has a name; contents that are not of a memory file system are not stored
  system_v = 2,  // a segment with a key and an id
  // What follows is stored from format version 4 on. These are pages of a file for processes that
  // have mapped it for themselves, and nobody writes to them.
  file_pages = 3,
  // What follows is stored from format version 8 on. This is a file that belongs to the job by its
  // name, and that no process has mapped. What it held is in the image, or its length alone.
  job_file = 4,
};

struct SharedMemory {
  SharedKind kind = SharedKind::anonymous;
  // It is the path of a file. For anonymous memory that was a file without a name it is the
  // directory of that file, from format version 9 on. For file_pages it is where the file may be
  // the same at the restart, or nothing.
  std::string path;
  std::uint64_t bytes = 0;  // its length
  std::uint32_t mode = 0;
  std::uint64_t key = 0;   // system_v
  std::uint32_t id = 0;    // system_v
  bool is_stored = false;  // its contents are in the image
  bool is_writable = false;
};

// Says what a file must hold so that it can be mapped again. There are parts for
// SharedKind::file_pages that are not in the image.
struct FilePart {
  std::uint32_t memory = 0;  // index of the memory
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t checksum = 0;  // format::checksum64
  bool operator==(const FilePart&) const = default;
};

struct SignalAction {
  std::uint64_t handler = 0, flags = 0, restorer = 0, mask = 0;
  bool operator==(const SignalAction&) const = default;
};

// All addresses of a thread are those of its process.
struct Thread {
  std::uint32_t id = 0;
  std::string name;
  ByteVector registers;           // process::Registers
  ByteVector extended_registers;  // as the processor saves them
  std::uint64_t signal_mask = 0;
  std::uint64_t robust_list = 0, robust_list_bytes = 0;
  std::uint64_t cleared_address = 0;   // set_tid_address
  std::uint64_t sequence_address = 0;  // rseq; 0: none
  std::uint32_t sequence_bytes = 0, sequence_signature = 0;
  std::uint64_t sequence_section = 0;                // the critical section under way
  std::uint64_t stack_address = 0, stack_bytes = 0;  // alternative signal stack
  std::uint32_t stack_flags = 0;
  std::vector<ByteVector> waiting_signals;  // siginfo_t
  // These are the number of a call that was to end at a time, and how much of that time was left.
  // -1 stands for no such call.
  std::int64_t timed_call = -1;
  std::uint64_t left_ns = 0;
};

// These are pages that a process may not touch, though they are among memory of its own that it may
// (MADV_GUARD_INSTALL).
struct Guard {
  std::uint32_t process = 0;  // its id
  std::uint64_t begin = 0, bytes = 0;
  bool operator==(const Guard&) const = default;
};

// A schedule says how a thread is scheduled, where that is not as for what the job was started
// with.
inline constexpr std::size_t kPolicyBytes = 48, kMostProcessorBytes = 8192;
struct Schedule {
  std::uint32_t thread = 0;    // its id
  ByteVector processors;       // processors that it may run on, a bit each; empty: those of all
  ByteVector policy;           // struct sched_attr without the niceness; empty: that of all
  std::uint32_t niceness = 0;  // 20 less the niceness, from 1 to 40; 0: that of all
  std::uint32_t io_priority = kNone;  // as ioprio_get gives it; kNone: that of all
  bool operator==(const Schedule&) const = default;
};

// This is what prctl(PR_SET_MM_MAP) takes, but for the descriptor of the program.
struct MemoryMap {
  std::uint64_t start_code = 0, end_code = 0, start_data = 0, end_data = 0, start_brk = 0, brk = 0,
                start_stack = 0;
  std::uint64_t arg_start = 0, arg_end = 0, env_start = 0, env_end = 0;
  ByteVector auxiliary;
};

struct Limit {
  std::uint64_t soft = 0, hard = 0;
};

struct Descriptor {
  std::uint32_t number = 0;
  std::uint32_t description = 0;  // index in Job::descriptions
  bool closes_on_exec = false;
};

// Says whose a lock on a file is. The numbers are stored.
enum class LockKind : std::uint32_t {
  process = 0,           // fcntl(F_SETLK): held by a process
  description = 1,       // fcntl(F_OFD_SETLK): of an open file description
  whole_description = 2  // flock: of an open file description, on all of the file
};

struct FileLock {
  // A process that holds it, or that has a descriptor of the description which holds it.
  std::uint32_t process = 0;
  std::uint32_t number = 0;  // number of that descriptor
  LockKind kind = LockKind::process;
  bool is_exclusive = false;
  std::uint64_t begin = 0, bytes = 0;  // 0 bytes: up to the end, wherever that will be
  bool operator==(const FileLock&) const = default;
};

struct Interval {
  std::uint64_t left_us = 0, period_us = 0;
};

struct Process {
  std::uint32_t id = 0, parent = 0, group = 0, session = 0;  // 0 stands for one outside of the job
  bool has_ended = false;  // it has ended, and nobody has waited for it
  std::uint32_t exit_status = 0;
  std::string program;  // path of what it runs
  std::string directory;
  std::uint32_t mask = 0;  // umask
  std::uint32_t personality = 0;
  std::uint32_t death_signal = 0, dumpable = 0, no_new_privileges = 0, subreaper = 0;
  std::uint64_t inheritable = 0, permitted = 0, effective = 0;  // capabilities
  std::vector<Thread> threads;                                  // the first is the leader
  std::vector<Area> areas;                                      // in rising order
  MemoryMap map;
  std::array<SignalAction, 64> actions{};
  std::array<Limit, 16> limits{};
  std::array<Interval, 3> intervals{};  // setitimer
  std::vector<ByteVector> waiting_signals;
  std::vector<Descriptor> descriptors;
};

// Says what an open file is. The numbers are stored.
enum class DescriptionKind : std::uint32_t {
  standard = 0,  // one that the job was started with, as standard input
  file = 1,      // a regular file or directory, known by its path
  device = 2,    // null, zero, full, random, urandom
  pipe = 3,
  counter = 4,  // eventfd
  memory = 5,   // a memory without a name that is one of Job::memories
  timer = 6,    // timerfd
  signals = 7,  // signalfd
  poll = 8,     // epoll
  socket = 10,
  terminal = 11,  // one end of a pseudo-terminal
  // What follows is stored from format version 6 on.
  notifications = 12,  // inotify
  process = 13,        // a process, by pidfd_open
};

// This is a file that an epoll set watches.
struct Watched {
  std::uint32_t number = 0;  // number of the descriptor by which it was added
  std::uint32_t events = 0;
  std::uint64_t data = 0;
};

// An open file description is what descriptors that were duplicated or inherited share.
struct Description {
  DescriptionKind kind = DescriptionKind::file;
  std::uint32_t flags = 0;  // the result of fcntl(F_GETFL)
  std::string path;
  std::uint64_t offset = 0;
  // The size of a file when it was stored. For a timer it is how often the timer has expired since
  // it was last read.
  std::uint64_t bytes = 0;
  // For `standard` it is its number; for pipe, socket and terminal the index of the channel, the
  // socket or the terminal; and for process its id.
  std::uint32_t which = 0;
  std::uint64_t count = 0;                   // counter. signals: the mask. timer: the clock
  bool is_semaphore = false;                 // counter
  bool is_write_end = false;                 // pipe; terminal: the end that programs have as theirs
  std::uint64_t left_ns = 0, period_ns = 0;  // timer
  std::vector<Watched> watched;              // poll
};

// Returns whether a file lies below /proc, where most files are those of one process.
inline bool is_of_proc(const Description& one) {
  return one.kind == DescriptionKind::file && one.path.starts_with("/proc/");
}

// A channel is a pipe and what it held.
inline constexpr std::uint32_t kPackets = 1;  // for Channel::type
struct Channel {
  std::uint32_t capacity_bytes = 0;
  std::uint32_t type = 0;  // from format version 6 on kPackets: each piece is a packet (O_DIRECT)
  std::vector<ByteVector> forward, backward;  // pieces in their order; only `forward` is used
  // The path of a named pipe is stored from format version 2 on.
  std::string path;
  std::uint32_t mode = 0;
};

// Says how far a socket has come. The numbers are stored.
enum class SocketState : std::uint32_t {
  idle = 0,  // neither of the others, with addresses or without
  listening = 1,
  connected = 2,  // a stream with a connection that both ends have
  ended = 3,      // a stream with a connection that is over
  // What follows is stored from format version 6 on.
  waiting = 4,  // a stream with a connection that nobody has accepted yet and that holds no bytes
};

// This is an option as setsockopt takes it.
struct SocketOption {
  std::uint32_t level = 0, name = 0;
  ByteVector value;
};

struct Socket {
  std::uint32_t family = 0, type = 0, protocol = 0;
  SocketState state = SocketState::idle;
  ByteVector local, remote;   // struct sockaddr; empty if there is none
  std::string directory;      // AF_UNIX: that a relative path starts from
  std::uint32_t mode = 0;     // mode of the file of that path
  std::uint32_t backlog = 0;  // for a listening socket
  // For a socket that is connected it is the index of the other end. kNone says that the other end
  // is closed.
  std::uint32_t peer = kNone;
  bool is_read_shut = false, is_write_shut = false;
  std::vector<SocketOption> options;
  std::vector<ByteVector> waiting;  // data that waits to be read from it, in pieces
  std::vector<ByteVector> senders;  // for datagrams: the addresses that belong to `waiting`
};

// This is a pseudo-terminal.
struct Terminal {
  ByteVector settings;  // struct termios
  ByteVector size;      // struct winsize
  bool is_locked = false, has_packets = false;
  bool is_hung_up = false;    // no program has it open any more
  std::uint32_t session = 0;  // the session whose controlling terminal it is; 0 if there is none
  std::uint32_t group = 0;    // the group of that session in the foreground
  ByteVector output;          // output of programs that nobody has read
};

// This is a connected socket whose other end is on another node of the job.
struct FarEnd {
  std::uint32_t socket = 0;  // index of the socket
  std::uint32_t node = 0;    // number of the other node
  std::uint32_t peer = 0;    // index of the other end among the far ends there
  bool operator==(const FarEnd&) const = default;
};

// This is a timer of timer_create.
struct Timer {
  std::uint32_t process = 0, number = 0;  // its id
  std::uint32_t clock = 0;                // as timer_create() takes it
  std::uint32_t notification = 0,
                signal = 0;  // SIGEV_SIGNAL or another, and the number of the signal
  std::uint32_t thread = 0;  // the thread that is signalled; 0 for any
  std::uint64_t value = 0;   // the value that comes with the signal
  std::uint64_t left_ns = 0, period_ns = 0;  // both 0: it stands still
  bool operator==(const Timer&) const = default;
};

// This is a set of semaphores of System V.
struct SemaphoreSet {
  std::uint32_t id = 0, key = 0, mode = 0;
  std::vector<std::uint32_t> values;
  bool operator==(const SemaphoreSet&) const = default;
};

// These describe a message queue of System V.
struct Message {
  std::uint64_t type = 0;
  ByteVector bytes;
  bool operator==(const Message&) const = default;
};
struct MessageQueue {
  std::uint32_t id = 0, key = 0, mode = 0;
  std::uint64_t most_bytes = 0;
  std::vector<Message> messages;
  bool operator==(const MessageQueue&) const = default;
};

// This is a process that a signal such as SIGSTOP has stopped.
struct StoppedProcess {
  std::uint32_t process = 0;
  bool is_told = false;  // its parent has waited for that already
  bool operator==(const StoppedProcess&) const = default;
};

// Says who gets a signal when an open file can be read or written (O_ASYNC).
struct SignalOwner {
  std::uint32_t description = 0;
  std::uint32_t kind = 0;    // F_OWNER_TID, F_OWNER_PID or F_OWNER_PGRP
  std::uint32_t id = 0;      // id of the thread, process or group
  std::uint32_t signal = 0;  // 0 stands for SIGIO
  bool operator==(const SignalOwner&) const = default;
};

// Says what may not be done to a memory any more (F_ADD_SEALS).
struct Seals {
  std::uint32_t memory = 0;  // its index
  std::uint32_t seals = 0;
  bool operator==(const Seals&) const = default;
};

// This is a file or directory that an open file of inotify watches.
struct FileWatch {
  std::uint32_t description = 0;
  std::uint32_t number = 0;  // the number by which the program knows it
  std::uint32_t events = 0;
  std::string path;
  bool operator==(const FileWatch&) const = default;
};

// This is a part of what was typed at a pseudo-terminal and no program has read. The parts are in
// their order the lines that are complete, and what follows them.
struct TypedInput {
  std::uint32_t terminal = 0;  // its index
  bool is_line = false;
  // A line that was ended by the character for the end of the file is stored without that
  // character.
  ByteVector bytes;
  bool operator==(const TypedInput&) const = default;
};

// These are privileges of a process beside its capabilities.
struct Privileges {
  std::uint32_t process = 0;
  std::uint32_t secure_bits = 0;
  std::uint64_t bounding = 0, ambient = 0;  // sets of capabilities
  std::uint32_t barriers = 0;               // commands of membarrier that it has registered for
  bool operator==(const Privileges&) const = default;
};

// This is a file that belonged to the job by its name.
struct JobFile {
  std::string path;
  // It is the index of the memory of kind job_file or file. kNone: another node's image holds it,
  // or it was a standard stream of the job.
  std::uint32_t memory = kNone;
  std::int64_t modified_ns = 0;  // since 1970
  bool operator==(const JobFile&) const = default;
};

// Says which signal a process sends to its parent when it ends, where that is not SIGCHLD. Its
// parent is a process of the job, because process 1 gets SIGCHLD from all.
struct EndSignal {
  std::uint32_t process = 0;
  std::uint32_t signal = 0;  // 0: none
  bool operator==(const EndSignal&) const = default;
};

// Says where the processor saves a part of its registers, such as the upper halves of those for
// AVX.
struct RegisterPart {
  std::uint32_t number = 0;  // the processor's own, as in the header of the saved registers
  std::uint32_t offset = 0, bytes = 0;
  bool operator==(const RegisterPart&) const = default;
};

struct Job {
  std::string machine;             // the machine that the registers belong to
  std::uint32_t command = 0;       // the process whose end is the job's
  std::uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC of the job when it stood still
  std::vector<Process> processes;  // parents before their children
  std::vector<SharedMemory> memories;
  std::vector<Description> descriptions;
  std::vector<Channel> channels;
  // What follows is stored from format version 2 on.
  std::vector<Socket> sockets;
  std::vector<Terminal> terminals;
  // What follows is stored from format version 3 on.
  std::vector<FileLock> locks;
  // What follows is stored from format version 4 on.
  std::vector<FilePart> file_parts;  // parts of each memory, in rising order
  // What follows is stored from format version 5 on.
  std::vector<Schedule> schedules;
  std::vector<Guard> guards;
  // What follows is stored from format version 6 on.
  std::vector<FarEnd> far_ends;
  std::vector<Timer> timers;
  std::vector<SemaphoreSet> semaphores;
  std::vector<MessageQueue> queues;
  std::vector<StoppedProcess> stopped;
  std::vector<SignalOwner> owners;
  std::vector<Seals> seals;
  std::vector<FileWatch> watches;
  std::vector<TypedInput> typed;
  std::vector<Privileges> privileges;
  // What follows is stored from format version 7 on.
  std::vector<std::string> addresses;  // those by which the job's processes know this node
  // What follows is stored from format version 8 on.
  std::uint64_t unix_ns = 0;               // time since 1970 when it stood still
  std::vector<std::string> file_patterns;  // names of files that belong to it, see job_files.hpp
  std::vector<JobFile> files;              // those that were there
  // What follows is stored from format version 9 on.
  std::vector<EndSignal> end_signals;
  // What follows is stored from format version 10 on.
  std::vector<std::string> instructions;     // sets that the processor has: x86_64/processor.hpp
  std::vector<RegisterPart> register_parts;  // how it saves its registers
  ByteVector kernel_code;                    // contents of the vdso
  std::uint64_t since_boot_ns = 0;           // CLOCK_BOOTTIME when it stood still
};

inline constexpr std::uint32_t kProcessesFormatVersion = 10;

// Returns the job with magic, version and checksum.
ByteVector encode_job(const Job& job);
// Believes nothing. Code::corrupt says that something is damaged or cannot be, and Code::mismatch
// that the version is newer.
Result<Job> decode_job(ByteView data);

}  // namespace diapause::process
