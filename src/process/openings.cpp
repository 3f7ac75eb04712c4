#include "process/openings.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <tuple>
#include <utility>

#include "process/file_access.hpp"
#include "process/holes.hpp"
#include "process/machine_files.hpp"
#include "process/open_sockets.hpp"
#include "process/references.hpp"
#include "process/standard_streams.hpp"
#include "process/terminals.hpp"
#include "process/zeros.hpp"

namespace diapause::process {
namespace {

// The flags that F_GETFL reports and F_SETFL changes. O_ASYNC is for the processes themselves to
// set, because the signal tells by which descriptor that was done.
constexpr std::uint32_t kChangeable = O_APPEND | O_DIRECT | O_NOATIME | O_NONBLOCK;

std::string name_of(const SharedMemory& memory) {
  return memory.path.empty() ? "memory that processes of the job share" : memory.path;
}

// Watches a file under the number by which the program knows that. The kernel gives each watch the
// next number.
Status watch_again(int notifications, const FileWatch& watch) {
  for (;;) {
    const int made =
        ::inotify_add_watch(notifications, watch.path.c_str(), watch.events | IN_DONT_FOLLOW);
    if (made < 0)
      return fail(os_error("watching " + watch.path + ", which the job watched (inotify)", errno));
    if (made == static_cast<int>(watch.number)) return {};
    ::inotify_rm_watch(notifications, made);
    if (made > static_cast<int>(watch.number)) {
      return fail(Code::mismatch,
                  "the kernel gives the watch of " + watch.path + " another number");
    }
  }
}

// Throws away what an inotify tells of the watches that were made only for their numbers.
void forget_events(int notifications) {
  alignas(inotify_event) std::array<char, 4096> room{};
  while (::read(notifications, room.data(), room.size()) > 0) {
  }
}

timespec to_timespec(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / 1'000'000'000),
          static_cast<long>(nanoseconds % 1'000'000'000)};
}

Status fill_pipe(int pipe, const Channel& channel) {
  ::fcntl(pipe, F_SETPIPE_SZ, channel.capacity_bytes);
  if (channel.type == kPackets) ::fcntl(pipe, F_SETFL, O_DIRECT);
  for (const ByteVector& piece : channel.forward) {
    if (::write(pipe, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) {
      return fail(os_error("filling a pipe", errno));
    }
  }
  return {};
}

Result<int> open_timer(const Description& one) {
  const int timer = ::timerfd_create(static_cast<int>(one.count), TFD_CLOEXEC);
  if (timer < 0) return fail(os_error("making a timerfd", errno));
  // While a program has not read that a periodic timer has expired, the kernel lets it stand still,
  // and goes on with it at the read. No time is left of it, but it is not off.
  const bool stands_still = one.period_ns > 0 && one.left_ns == 0 && one.bytes > 0;
  const itimerspec setting{to_timespec(one.period_ns), to_timespec(stands_still ? 1 : one.left_ns)};
  ::timerfd_settime(timer, 0, &setting, nullptr);
  pollfd expiry{timer, POLLIN, 0};
  if (stands_still) ::poll(&expiry, 1, 1000);
  constexpr unsigned long kSetTicks = _IOW('T', 0, std::uint64_t);  // TFD_IOC_SET_TICKS
  if (one.bytes > 0 && ::ioctl(timer, kSetTicks, &one.bytes) != 0) {
    const int error = errno;
    ::close(timer);
    return fail(os_error("letting a timerfd have expired", error));
  }
  return timer;
}

Result<int> open_signals(const Description& one) {
  // The kernel's signal set has 8 bytes, and that of the C library has more.
  const auto opened =
      static_cast<int>(::syscall(SYS_signalfd4, -1, &one.count, sizeof one.count, SFD_CLOEXEC));
  if (opened < 0) return fail(os_error("making a signalfd", errno));
  return opened;
}

}  // namespace

std::vector<ContentsList> contents_of_memories(const Job& job,
                                               const std::vector<StoredContents>& contents) {
  std::vector<ContentsList> parts(job.memories.size());
  for (const StoredContents& one : contents) {
    if (one.process == 0) parts[one.shared].push_back(&one);
  }
  return parts;
}

// Of the numbers that a descriptor can have here, finds the longest run of those that no process of
// the job uses. Most are above all that it uses, but some tools put theirs just below the limit.
void Openings::find_free_numbers(const Job& job) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::set<std::uint64_t> used = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (const Process& process : job.processes) {
    for (const Descriptor& one : process.descriptors) used.insert(one.number);
  }
  used.insert(std::min<std::uint64_t>(limit.rlim_cur, INT_MAX));
  std::uint64_t next = 0;
  for (const std::uint64_t number : used) {
    if (number - next > beyond_ - lowest_) std::tie(lowest_, beyond_) = std::pair(next, number);
    next = number + 1;
  }
}

// Gives a descriptor another number, which the job does not use, so that the numbers of the job can
// be given out in any order.
Result<int> Openings::copy(int number) const {
  const int copied = ::fcntl(number, F_DUPFD_CLOEXEC, static_cast<int>(lowest_));
  const int error = copied < 0 ? errno : EMFILE;
  if (copied >= 0 && static_cast<std::uint64_t>(copied) < beyond_) return copied;
  if (copied >= 0) ::close(copied);
  return fail(os_error("opening the files of the job (see ulimit -n)", error));
}

// The same; closes `number` in any case.
Result<int> Openings::move(int number) const {
  Result<int> moved = copy(number);
  ::close(number);
  return moved;
}

// Returns whether a file, which is about to be made, is not there.
bool Openings::note_if_missing(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT) return false;
  made_.push_back(path);
  return true;
}

Status Openings::open_memory(const SharedMemory& memory, bool is_mapped) {
  int opened = -1;
  // A segment belongs to the namespace of the job, and is made there. Files that nobody has open
  // are put back at the end.
  if (memory.kind == SharedKind::system_v || memory.kind == SharedKind::job_file) {
    memories_.push_back(-1);
    return {};
  }
  if (memory.kind == SharedKind::file) {
    make_directories_of(memory.path);
    note_if_missing(memory.path);
    opened = open_as_owner(memory.path, O_RDWR | O_CREAT, static_cast<mode_t>(memory.mode));
    if (opened < 0)
      return fail(os_error("opening " + memory.path + ", which the job had mapped", errno));
  } else {
    // A file without a name is made where it was, if the file system can do that.
    const bool has_directory = memory.kind == SharedKind::anonymous && memory.path.starts_with('/');
    if (has_directory) opened = ::open(memory.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (opened >= 0) ::fchmod(opened, static_cast<mode_t>(memory.mode));
    if (opened < 0) opened = ::memfd_create("diapause", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (opened < 0) return fail(os_error("making shared memory", errno));
  }
  DIAPAUSE_TRY_ASSIGN(opened, move(opened));
  memories_.push_back(opened);
  struct stat now {};
  const bool is_file = memory.kind == SharedKind::file;
  const bool is_long = is_file && ::fstat(opened, &now) == 0 &&
                       static_cast<std::uint64_t>(now.st_size) >= memory.bytes;
  // Locked pages of a mapped file are there as soon as it is mapped.
  if (is_long || (is_file && !is_mapped)) return {};
  if (::ftruncate(opened, static_cast<off_t>(memory.bytes)) == 0) return {};
  return fail(
      os_error("making shared memory of " + std::to_string(memory.bytes) + " bytes", errno));
}

// Opens the file that pages come from, if it still holds all that the image has of them. The pages
// then need no memory of the job, and its next checkpoints need not hold them. Returns -1 if the
// pages must be made from the image. Fails if the image does not hold them and the file cannot be
// opened.
Result<int> Openings::open_same_file(const SharedMemory& memory, const ContentsList& parts,
                                     const ReadContents& read) const {
  if (memory.path.empty()) return -1;
  const auto file = open_mapped_file(memory.path);
  if (!file && memory.is_stored) return -1;
  if (!file) return fail(file.error());
  std::atomic<bool> is_same = true;
  const auto compare = [&](const StoredContents& one, std::uint64_t offset,
                           ByteView bytes) -> Status {
    ByteVector held(bytes.size());
    const bool is_equal =
        file->read_exact(held, one.offset + offset) && std::ranges::equal(held, bytes);
    if (!is_equal) is_same = false;
    return {};
  };
  DIAPAUSE_TRY(read(parts, compare));
  return is_same ? copy(file->fd()) : -1;
}

Status Openings::fill_memories(const Job& job, const std::vector<StoredContents>& contents,
                               const ReadContents& read) {
  const std::vector<ContentsList> parts = contents_of_memories(job, contents);
  std::set<std::uint32_t> mapped;
  for (const Process& process : job.processes) {
    for (const Area& area : process.areas) mapped.insert(area.shared);
  }
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const SharedMemory& memory = job.memories[i];
    const bool is_file = memory.kind == SharedKind::file || memory.kind == SharedKind::job_file;
    if (is_file && memory.is_stored) held_.insert(memory.path);
    if (memory.kind == SharedKind::file_pages) {
      DIAPAUSE_TRY_ASSIGN(const int file, open_same_file(memory, parts[i], read));
      if (file >= 0) memories_.push_back(file);
      if (file >= 0) continue;
    }
    DIAPAUSE_TRY(open_memory(memory, mapped.contains(i)));
    const int to = memories_.back();
    if (to < 0 || is_file) continue;
    const auto write = [to, &memory](const StoredContents& one, std::uint64_t offset,
                                     ByteView bytes) {
      return write_all(to, one.offset + offset, bytes,
                       "writing what the checkpoint holds of " + name_of(memory));
    };
    DIAPAUSE_TRY(read(parts[i], write));
  }
  return {};
}

// Opens a file as it was when the image was made. The offset is the same. Fails with Code::mismatch
// if the file is shorter now.
Result<int> Openings::open_file(const Description& one) {
  const bool is_held = held_.contains(one.path);
  if (is_held) make_directories_of(one.path);
  const bool is_made = is_held && note_if_missing(one.path);
  const auto flags = static_cast<int>(
      one.flags & ~static_cast<std::uint32_t>(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY));
  if (const auto instead = open_instead(one.path, flags)) {
    (*log_)(Severity::warning, fmt::format("{}, which the job had open, is not on this machine: it "
                                           "has {} instead",
                                           one.path, instead->path));
    return instead->file;
  }
  const int file = open_as_owner(one.path, flags | (is_made ? O_CREAT : 0), 0600);
  if (file < 0) return fail(os_error("opening " + one.path + ", which the job had open", errno));
  struct stat now {};
  const bool is_known = ::fstat(file, &now) == 0 && (flags & O_PATH) == 0;
  // The offset of a directory says how far it has been read.
  if (is_known && S_ISDIR(now.st_mode)) ::lseek(file, static_cast<off_t>(one.offset), SEEK_SET);
  if (!is_known || !S_ISREG(now.st_mode)) return file;
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  if (bytes < one.bytes && !is_held) {
    ::close(file);
    return fail(Code::mismatch,
                fmt::format("{} had {} bytes when the image was made, and has {} now", one.path,
                            one.bytes, bytes));
  }
  ::lseek(file, static_cast<off_t>(one.offset), SEEK_SET);
  return file;
}

// Empties the places of a file that the job had mapped and of which the image holds nothing: the
// file has had nothing there.
Status Openings::empty_holes(const Job& job, std::uint32_t index, const ContentsList& parts) const {
  const SharedMemory& memory = job.memories[index];
  for (const Process& process : job.processes) {
    for (const Area& area : process.areas) {
      if (area.kind != AreaKind::shared || area.shared != index) continue;
      const Extent mapped{area.offset, std::min(area.offset + area.end - area.begin, memory.bytes)};
      std::vector<Extent> held;
      for (const StoredContents* one : parts) {
        const Extent part{std::max(one->offset, mapped.begin),
                          std::min(one->offset + one->bytes, mapped.end)};
        if (part.begin < part.end) held.push_back(part);
      }
      std::ranges::sort(held, {}, &Extent::begin);
      for (const Extent& hole : rest_of(mapped, held))
        DIAPAUSE_TRY(empty_part(memories_[index], hole, "emptying a part of " + memory.path));
    }
  }
  return {};
}

// Writes what the image holds of files that the job had open or mapped.
Status Openings::write_files(const Job& job, const std::vector<StoredContents>& contents,
                             const ReadContents& read) const {
  const std::vector<ContentsList> parts = contents_of_memories(job, contents);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SharedMemory& memory = job.memories[i];
    if (memory.kind != SharedKind::file) continue;
    const std::string what = "writing what the checkpoint holds of " + memory.path;
    if (memory.is_stored) DIAPAUSE_TRY(empty_holes(job, static_cast<std::uint32_t>(i), parts[i]));
    DIAPAUSE_TRY(
        read(parts[i], [&](const StoredContents& one, std::uint64_t offset, ByteView bytes) {
          return write_sparsely(memories_[i], one.offset + offset, bytes, what);
        }));
    if (::ftruncate(memories_[i], static_cast<off_t>(memory.bytes)) != 0)
      return fail(os_error(what, errno));
  }
  return {};
}

Status Openings::finish(const Job& job, const std::vector<StoredContents>& contents,
                        const ReadContents& read) {
  made_.clear();
  // The next checkpoint has to find a standard input, and not a file that the job has opened.
  if (input_ >= 0) ::dup2(descriptions_[static_cast<std::size_t>(input_)], STDIN_FILENO);
  for (std::size_t i = 0; i < job.descriptions.size(); ++i) {
    const Description& one = job.descriptions[i];
    const bool is_written = one.kind == DescriptionKind::file && (one.flags & O_PATH) == 0 &&
                            (one.flags & O_ACCMODE) != O_RDONLY;
    struct stat now {};
    if (!is_written || ::fstat(descriptions_[i], &now) != 0 || !S_ISREG(now.st_mode)) continue;
    if (static_cast<std::uint64_t>(now.st_size) <= one.bytes) continue;
    if (::ftruncate(descriptions_[i], static_cast<off_t>(one.bytes)) == 0) continue;
    return fail(os_error("cutting " + one.path + " to the length that it had", errno));
  }
  DIAPAUSE_TRY(write_files(job, contents, read));
  // A program is not told what the restart has done to watched files.
  for (std::size_t i = 0; i < job.descriptions.size(); ++i) {
    if (job.descriptions[i].kind != DescriptionKind::notifications) continue;
    forget_events(descriptions_[i]);
    ::fcntl(descriptions_[i], F_SETFL, static_cast<int>(job.descriptions[i].flags & kChangeable));
  }
  return {};
}

// Opens a named pipe by its path, and makes it if it is not there. It stays a named pipe, whoever
// else has it open.
Status Openings::open_named_pipe(const Channel& channel) {
  make_directories_of(channel.path);
  const bool is_made = ::mkfifo(channel.path.c_str(), static_cast<mode_t>(channel.mode)) == 0;
  if (!is_made && errno != EEXIST)
    return fail(os_error("making the named pipe " + channel.path, errno));
  Ends& made = channels_.emplace_back();
  const int opened = ::open(channel.path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return fail(os_error("opening the named pipe " + channel.path, errno));
  struct stat found {};
  if (::fstat(opened, &found) != 0 || !S_ISFIFO(found.st_mode)) {
    ::close(opened);
    return fail(Code::mismatch,
                channel.path + " was a named pipe of the job, and is another file now");
  }
  DIAPAUSE_TRY_ASSIGN(made.write, move(opened));
  return {};
}

Status Openings::open_channels(const Job& job) {
  for (const Channel& channel : job.channels) {
    if (!channel.path.empty()) {
      DIAPAUSE_TRY(open_named_pipe(channel));
      DIAPAUSE_TRY(fill_pipe(channels_.back().write, channel));
      continue;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(os_error("making a pipe", errno));
    Ends& made = channels_.emplace_back();
    made.read = ends[0];
    made.write = ends[1];
    DIAPAUSE_TRY_ASSIGN(made.read, move(ends[0]));
    DIAPAUSE_TRY_ASSIGN(made.write, move(ends[1]));
    DIAPAUSE_TRY(fill_pipe(made.write, channel));
  }
  return {};
}

Status Openings::open_terminals(const Job& job) {
  for (std::uint32_t i = 0; i < job.terminals.size(); ++i) {
    const Terminal& one = job.terminals[i];
    std::vector<TypedInput> typed;
    std::ranges::copy_if(job.typed, std::back_inserter(typed),
                         [&](const TypedInput& each) { return each.terminal == i; });
    DIAPAUSE_TRY_ASSIGN(const int made, open_terminal(one, typed));
    DIAPAUSE_TRY_ASSIGN(const int master, move(made));
    terminals_.push_back(master);
    int end = -1;
    if (one.session != 0) {
      DIAPAUSE_TRY_ASSIGN(end, open_terminal_again(master, O_RDWR));
      DIAPAUSE_TRY_ASSIGN(end, move(end));
    }
    controlling_.push_back(end);
  }
  return {};
}

// Opens an end of a pipe for a description. The ends with which the pipe was made are given out
// once. If a program had opened an end again, that description gets an open file of its own.
int Openings::open_end_of_pipe(const Description& one) {
  Ends& ends = channels_[one.which];
  const int end = one.is_write_end ? ends.write : ends.read;
  bool& is_given = one.is_write_end ? ends.is_write_given : ends.is_read_given;
  const bool is_first = !is_given && (one.flags & O_ACCMODE) != O_RDWR;
  if (is_first) is_given = true;
  if (is_first) return ::dup(end);
  const int flags = static_cast<int>(one.flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC;
  return ::open(fmt::format("/proc/self/fd/{}", end).c_str(), flags);
}

Result<int> Openings::open_end_of_terminal(const Description& one) {
  if (one.is_write_end) return open_terminal_again(terminals_[one.which], one.flags & O_ACCMODE);
  return ::dup(terminals_[one.which]);
}

Status Openings::open_all_sockets(Job& job, const OpeningEnvironment& environment) {
  DIAPAUSE_TRY(open_sockets(job, environment.log, environment.relocation, sockets_));
  if (environment.others != nullptr)
    DIAPAUSE_TRY(open_far_sockets(job, environment.log, *environment.others, sockets_));
  for (int& socket : sockets_) {
    DIAPAUSE_TRY_ASSIGN(socket, move(std::exchange(socket, -1)));
  }
  return {};
}

Result<int> Openings::open_description(const Description& one) {
  int opened = -1;
  switch (one.kind) {
    case DescriptionKind::standard: {
      DIAPAUSE_TRY_ASSIGN(const StandardStream stream, open_standard_stream(one, *log_));
      if (stream.takes_place && one.which == STDIN_FILENO)
        input_ = static_cast<int>(descriptions_.size());
      return stream.file;
    }
    case DescriptionKind::file:
      return open_file(one);
    case DescriptionKind::device:
      opened = ::open(one.path.c_str(), static_cast<int>(one.flags & O_ACCMODE) | O_CLOEXEC);
      break;
    case DescriptionKind::pipe:
      if (one.path.empty()) {
        opened = open_end_of_pipe(one);
      } else {
        opened = ::open(one.path.c_str(),
                        static_cast<int>(one.flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC);
      }
      break;
    case DescriptionKind::counter:
      opened = ::eventfd(0, EFD_CLOEXEC | (one.is_semaphore ? EFD_SEMAPHORE : 0));
      if (opened >= 0 && one.count > 0) (void)!::write(opened, &one.count, sizeof one.count);
      break;
    case DescriptionKind::memory: {
      const std::string path = fmt::format("/proc/self/fd/{}", memories_[one.which]);
      opened = open_as_owner(path, static_cast<int>(one.flags & (O_ACCMODE | O_APPEND)));
      if (opened >= 0) ::lseek(opened, static_cast<off_t>(one.offset), SEEK_SET);
      break;
    }
    case DescriptionKind::timer:
      return open_timer(one);
    case DescriptionKind::signals:
      return open_signals(one);
    case DescriptionKind::poll:
      opened = ::epoll_create1(EPOLL_CLOEXEC);
      break;
    case DescriptionKind::socket:
      opened = ::dup(sockets_[one.which]);
      break;
    case DescriptionKind::terminal:
      return open_end_of_terminal(one);
    case DescriptionKind::notifications:
      opened = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
      break;
    case DescriptionKind::process:
      break;
  }
  if (opened < 0)
    return fail(os_error("opening a file of the job again (" + one.path + ")", errno));
  return opened;
}

Result<Openings> Openings::open(Job& job, const std::vector<StoredContents>& contents,
                                const ReadContents& read, const OpeningEnvironment& environment) {
  Openings openings;
  openings.log_ = &environment.log;
  openings.find_free_numbers(job);
  DIAPAUSE_TRY(openings.fill_memories(job, contents, read));
  DIAPAUSE_TRY(openings.open_channels(job));
  DIAPAUSE_TRY(openings.open_all_sockets(job, environment));
  DIAPAUSE_TRY(openings.open_terminals(job));
  for (const Description& one : job.descriptions) {
    if (one.kind == DescriptionKind::process || is_of_proc(one)) {
      openings.descriptions_.push_back(-1);
      continue;
    }
    DIAPAUSE_TRY_ASSIGN(const int opened, openings.open_description(one));
    const bool is_ours = one.kind == DescriptionKind::standard;
    DIAPAUSE_TRY_ASSIGN(const int moved, openings.move(opened));
    openings.descriptions_.push_back(moved);
    // Does not block before finish().
    const bool is_quiet = one.kind == DescriptionKind::notifications;
    if (!is_ours && !is_quiet && (one.flags & O_PATH) == 0) {
      ::fcntl(moved, F_SETFL, static_cast<int>(one.flags & kChangeable));
    }
  }
  DIAPAUSE_TRY(openings.open_notifications(job));
  openings.close_what_was_given_out();
  return openings;
}

Openings::Openings(Openings&& other) noexcept
    : lowest_(other.lowest_),
      beyond_(other.beyond_),
      input_(other.input_),
      held_(std::move(other.held_)),
      made_(std::exchange(other.made_, {})),
      descriptions_(std::exchange(other.descriptions_, {})),
      memories_(std::exchange(other.memories_, {})),
      controlling_(std::exchange(other.controlling_, {})),
      channels_(std::exchange(other.channels_, {})),
      sockets_(std::exchange(other.sockets_, {})),
      terminals_(std::exchange(other.terminals_, {})) {}

Openings::~Openings() {
  close_all();
  for (const std::string& path : made_) {
    struct stat now {};
    if (::lstat(path.c_str(), &now) == 0 && S_ISREG(now.st_mode)) ::unlink(path.c_str());
  }
}

Status Openings::open_notifications(const Job& job) {
  std::vector<FileWatch> watches = job.watches;
  std::ranges::sort(watches, {}, &FileWatch::number);
  for (const FileWatch& one : watches)
    DIAPAUSE_TRY(watch_again(descriptions_[one.description], one));
  return {};
}

Status Openings::add_seals(const Job& job) const {
  for (const Seals& one : job.seals) {
    if (::fcntl(memories_[one.memory], F_ADD_SEALS, static_cast<int>(one.seals)) == 0) continue;
    return fail(os_error("sealing a memory of the job", errno));
  }
  return {};
}

std::vector<int> Openings::numbers() const {
  std::vector<int> all;
  const auto is_open = [](int number) { return number >= 0; };
  std::ranges::copy_if(descriptions_, std::back_inserter(all), is_open);
  std::ranges::copy_if(memories_, std::back_inserter(all), is_open);
  std::ranges::copy_if(controlling_, std::back_inserter(all), is_open);
  return all;
}

// Closes the pipes, sockets and terminals of which the descriptions hold duplicates.
void Openings::close_what_was_given_out() {
  for (const Ends& ends : channels_) {
    ::close(ends.read);
    ::close(ends.write);
  }
  for (const int socket : sockets_) ::close(socket);
  for (const int terminal : terminals_) ::close(terminal);
  channels_.clear();
  sockets_.clear();
  terminals_.clear();
}

void Openings::close_all() {
  for (const int number : numbers()) ::close(number);
  close_what_was_given_out();
  descriptions_.clear();
  memories_.clear();
  controlling_.clear();
}

}  // namespace diapause::process
