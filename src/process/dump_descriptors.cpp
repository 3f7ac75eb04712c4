// Dumps the open files of a frozen process.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>

#include "process/borrowed.hpp"
#include "process/dump_parts.hpp"
#include "process/holes.hpp"
#include "process/terminals.hpp"

namespace diapause::process {
namespace {

Result<Found> look_at(pid_t here, int number) {
  Found found{here, number, {}, {}, {}};
  const std::string path = fmt::format("/proc/{}/fd/{}", here, number);
  DIAPAUSE_TRY_ASSIGN(found.link, read_link(path));
  DIAPAUSE_TRY_ASSIGN(found.details, read_proc(fmt::format("/proc/{}/fdinfo/{}", here, number)));
  if (::stat(path.c_str(), &found.stat) != 0) return fail(os_error("looking at " + path, errno));
  return found;
}

bool are_same(pid_t one, int number, pid_t other, int other_number) {
  return ::syscall(SYS_kcmp, one, other, KCMP_FILE, number, other_number) == 0;
}

// Returns whether this is a file without a name that is only read, such as a long here-document of
// a shell. Nobody can give it to a restart, so the image has to hold it.
bool is_read_nameless(const Found& found) {
  return S_ISREG(found.stat.st_mode) && found.stat.st_nlink == 0 &&
         (found.number_of("flags", 8) & O_ACCMODE) == O_RDONLY;
}

// Returns the number of the descriptor that the job was started with and that is the same open file
// or the same terminal. Returns nothing if there is none.
std::optional<std::uint32_t> find_standard(const DumpWork& work, const Found& found) {
  if (is_read_nameless(found)) return std::nullopt;
  for (int number = 0; number < 3; ++number) {
    if (are_same(found.here, found.number, work.standard, number))
      return static_cast<std::uint32_t>(number);
  }
  if (are_same(found.here, found.number, work.standard, found.number))
    return static_cast<std::uint32_t>(found.number);
  if (!S_ISCHR(found.stat.st_mode)) return std::nullopt;
  for (int number = 0; number < 3; ++number) {
    struct stat own {};
    const bool is_terminal = major(found.stat.st_rdev) == 4 ||
                             (major(found.stat.st_rdev) >= 136 && major(found.stat.st_rdev) <= 143);
    if (is_terminal && ::fstat(number, &own) == 0 && S_ISCHR(own.st_mode) &&
        own.st_rdev == found.stat.st_rdev) {
      return static_cast<std::uint32_t>(number);
    }
  }
  return std::nullopt;
}

std::string device_path(const struct stat& found) {
  constexpr std::pair<unsigned, const char*> kMemoryDevices[] = {{3, "/dev/null"},
                                                                 {5, "/dev/zero"},
                                                                 {7, "/dev/full"},
                                                                 {8, "/dev/random"},
                                                                 {9, "/dev/urandom"}};
  if (major(found.st_rdev) == 1) {
    for (const auto& [number, path] : kMemoryDevices) {
      if (minor(found.st_rdev) == number) return path;
    }
  }
  if (major(found.st_rdev) == 5 && minor(found.st_rdev) == 0) return "/dev/tty";
  return "";
}

// Adds the contents of a file to the image as a shared memory, which may be mapped as well. Returns
// the index of the shared memory.
std::uint32_t store_file(DumpWork& work, const Found& found, const SharedMemory& like) {
  std::vector<SharedMemory>& memories = work.result.job.memories;
  const auto [known, is_new] = work.memories.try_emplace(
      {found.stat.st_dev, found.stat.st_ino}, static_cast<std::uint32_t>(memories.size()));
  if (is_new) memories.push_back(like);
  SharedMemory& memory = memories[known->second];
  memory.bytes = static_cast<std::uint64_t>(found.stat.st_size);
  memory.mode = found.stat.st_mode & 07777;
  memory.is_stored = memory.is_writable = true;
  const std::string path = fmt::format("/proc/{}/fd/{}", found.here, found.number);
  for (const Extent& fresh : take_unstored(work, known->second, {0, memory.bytes})) {
    // One without a name begins empty. Of one with a name a restart could not tell holes from what
    // was not stored.
    const auto pages =
        memory.kind == SharedKind::anonymous ? pages_of_file(path, fresh) : std::nullopt;
    for (const Extent& one : pages.value_or(std::vector<Extent>{fresh})) {
      work.result.contents.push_back({found.here, one.begin, one.end - one.begin, 0, known->second,
                                      one.begin, false, found.number});
    }
  }
  return known->second;
}

// Describes a file that has lost its name or never had one. If it is on a disk, it is made again in
// its directory.
void describe_nameless(DumpWork& work, const Found& found, Description& to) {
  to.kind = DescriptionKind::memory;
  to.which = store_file(work, found, {});
  SharedMemory& memory = work.result.job.memories[to.which];
  const std::string directory = std::filesystem::path(found.link).parent_path();
  struct stat there {};
  const bool is_in_it = memory.kind == SharedKind::anonymous &&
                        ::stat(directory.c_str(), &there) == 0 && there.st_dev == found.stat.st_dev;
  if (is_in_it && !lies_in_memory(directory)) memory.path = directory;
}

// Stores the contents of a file that the job may write to, because the file may hold something else
// at the restart. Files over the limits above, or that cannot be read by their path, are not
// stored.
void keep_contents(DumpWork& work, const Found& found, const Description& file) {
  const auto bytes = static_cast<std::uint64_t>(found.stat.st_size);
  const bool is_written = (file.flags & O_ACCMODE) != O_RDONLY && (file.flags & O_PATH) == 0;
  const bool is_much = bytes > kMostOfAFile || work.file_bytes + bytes > kMostOfFiles;
  if (!is_written || !S_ISREG(found.stat.st_mode) || is_much ||
      ::access(file.path.c_str(), R_OK) != 0)
    return;
  SharedMemory like;
  like.kind = SharedKind::file;
  like.path = file.path;
  const std::vector<Contents>& all = work.result.contents;
  const std::size_t first = all.size();
  store_file(work, found, like);
  for (std::size_t i = first; i < all.size(); ++i) work.file_bytes += all[i].bytes;
}

bool is_still_there(const Found& found) {
  struct stat by_path {};
  return ::stat(found.link.c_str(), &by_path) == 0 && by_path.st_ino == found.stat.st_ino &&
         by_path.st_dev == found.stat.st_dev;
}

// Records what may not be done to a memory any more. Programs that receive such memory rely on
// that.
void dump_seals(DumpWork& work, const Found& found, std::uint32_t memory) {
  const auto borrowed = Borrowed::of(found.here, found.number);
  const int seals = borrowed ? ::fcntl(borrowed->number(), F_GET_SEALS) : -1;
  std::vector<Seals>& all = work.result.job.seals;
  const bool is_known = std::ranges::find(all, memory, &Seals::memory) != all.end();
  if (seals > 0 && !is_known) all.push_back({memory, static_cast<std::uint32_t>(seals)});
}

// Returns the number that stands in `path` behind `before`.
std::optional<std::uint32_t> number_behind(std::string_view path, std::string_view before) {
  std::uint32_t number = 0;
  if (!path.starts_with(before)) return std::nullopt;
  path.remove_prefix(before.size());
  const auto read = std::from_chars(path.begin(), path.end(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// Returns whether a file below /proc is there after a restart: it is not that of a process or
// thread that has ended, and not of this machine's /proc, where the processes of the job have other
// ids.
bool outlives_a_restart(FrozenJob& job, const Found& found) {
  const auto process = number_behind(found.link, "/proc/");
  if (!process) return true;
  struct stat machine {};
  if (::stat("/proc", &machine) != 0 || machine.st_dev == found.stat.st_dev) return false;
  const auto known = std::ranges::find_if(
      job.processes(), [&](const FrozenProcess& one) { return one.status.id == *process; });
  if (known == job.processes().end()) return false;
  const auto thread = number_behind(found.link, fmt::format("/proc/{}/task/", *process));
  return !thread || std::ranges::any_of(known->threads, [&](const FrozenThread& one) {
    return one.name.thread == *thread;
  });
}

// Returns whether a program that has read so much of a file below /proc goes on with its beginning,
// or finds its end. What is between says something else after a restart.
bool is_between_readings(const Found& found, const Description& file) {
  if (file.offset == 0 || (file.flags & O_ACCMODE) == O_WRONLY) return true;
  const std::string path = fmt::format("/proc/{}/fd/{}", found.here, found.number);
  const int again = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (again < 0) return false;
  char next = 0;
  const ssize_t got = ::pread(again, &next, 1, static_cast<off_t>(file.offset));
  ::close(again);
  return got == 0;
}

Status describe_file(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                     Description& to) {
  if (is_of_posix_queues(fmt::format("/proc/{}/fd/{}", found.here, found.number))) {
    work.refuse(frozen.status,
                fmt::format("has descriptor {} open on the POSIX message queue {} (mq_open), which "
                            "is not restored yet",
                            found.number, found.link));
    return {};
  }
  const bool is_nameless = found.stat.st_nlink == 0 || found.link.starts_with("/memfd:");
  if (is_nameless && S_ISREG(found.stat.st_mode)) {
    describe_nameless(work, found, to);
    dump_seals(work, found, to.which);
    return {};
  }
  to.kind = DescriptionKind::file;
  to.path = found.link;
  const std::string why =
      fmt::format("has descriptor {} ({}), which cannot be opened by that name again", found.number,
                  found.link);
  if (is_of_proc(to)) {
    // Programs read most of these files at once, and are through with them a moment later.
    if (!outlives_a_restart(work.frozen, found) || !is_between_readings(found, to))
      work.refuse_for_now(frozen.status, why);
    return {};
  }
  if (!is_still_there(found)) work.refuse(frozen.status, why);
  to.bytes = S_ISREG(found.stat.st_mode) ? static_cast<std::uint64_t>(found.stat.st_size) : 0;
  keep_contents(work, found, to);
  return {};
}

Status describe_pipe(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                     Description& to) {
  // A named pipe that has lost its name is as good as one without.
  const bool is_named = !found.link.starts_with("pipe:") && found.stat.st_nlink > 0;
  if (is_named && !is_still_there(found)) {
    work.refuse(
        frozen.status,
        fmt::format("has descriptor {} open on the named pipe {}, which is another file by now "
                    "or none",
                    found.number, found.link));
  }
  to.kind = DescriptionKind::pipe;
  to.is_write_end = (to.flags & O_ACCMODE) == O_WRONLY;
  std::vector<Channel>& channels = work.result.job.channels;
  const auto [known, is_new] = work.channels.try_emplace(
      {found.stat.st_dev, found.stat.st_ino}, static_cast<std::uint32_t>(channels.size()));
  if (is_new) channels.emplace_back();
  to.which = known->second;
  if (is_named) {
    channels[to.which].path = to.path = found.link;
    channels[to.which].mode = found.stat.st_mode & 07777;
  }
  return {};
}

// Describes either end of a pseudo-terminal. Returns false if the descriptor is neither.
Result<bool> describe_terminal(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                               Description& to) {
  constexpr unsigned kMultiplexer = 5, kFirst = 136, kLast = 143;
  const unsigned device = major(found.stat.st_rdev);
  const bool is_master = device == kMultiplexer && minor(found.stat.st_rdev) == 2;
  if (!is_master && (device < kFirst || device > kLast)) return false;
  std::uint32_t number = minor(found.stat.st_rdev);
  if (is_master) {
    DIAPAUSE_TRY_ASSIGN(const Borrowed master, Borrowed::of(found.here, found.number));
    number = number_of_terminal(master.number()).value_or(0);
  }
  auto seen = std::ranges::find(work.terminals, number, &DumpWork::SeenTerminal::number);
  if (seen == work.terminals.end()) {
    work.terminals.push_back({number});
    work.result.job.terminals.emplace_back();
    seen = work.terminals.end() - 1;
  }
  (is_master ? seen->master_here : seen->here) = found.here;
  (is_master ? seen->master_number : seen->descriptor) = found.number;
  seen->status = frozen.status;
  seen->place = fmt::format("descriptor {} ({})", found.number, found.link);
  to.kind = DescriptionKind::terminal;
  to.which = static_cast<std::uint32_t>(seen - work.terminals.begin());
  to.is_write_end = !is_master;
  return true;
}

Status describe(DumpWork& work, const FrozenProcess& frozen, const Found& found, Description& to) {
  to.flags = static_cast<std::uint32_t>(found.number_of("flags", 8)) &
             ~static_cast<std::uint32_t>(O_CLOEXEC);
  to.offset = found.number_of("pos", 10);
  if (const auto which = find_standard(work, found)) {
    to.kind = DescriptionKind::standard;
    to.which = *which;
    if (S_ISREG(found.stat.st_mode)) to.path = found.link;
    return {};
  }
  if (found.link == "anon_inode:[pidfd]") return describe_pidfd(work, frozen, found, to);
  if (S_ISREG(found.stat.st_mode) || S_ISDIR(found.stat.st_mode))
    return describe_file(work, frozen, found, to);
  if (S_ISFIFO(found.stat.st_mode)) return describe_pipe(work, frozen, found, to);
  if (S_ISSOCK(found.stat.st_mode)) {
    const std::string place = fmt::format("descriptor {} ({})", found.number, found.link);
    return describe_socket(work,
                           {found.here, found.number, found.stat.st_ino, frozen.status, place}, to);
  }
  if (S_ISCHR(found.stat.st_mode) && !device_path(found.stat).empty()) {
    to.kind = DescriptionKind::device;
    to.path = device_path(found.stat);
    return {};
  }
  if (S_ISCHR(found.stat.st_mode)) {
    DIAPAUSE_TRY_ASSIGN(const bool is_terminal, describe_terminal(work, frozen, found, to));
    if (is_terminal) return {};
  }
  DIAPAUSE_TRY_ASSIGN(const bool is_event_source, describe_event_source(work, frozen, found, to));
  if (is_event_source) return {};
  work.refuse(frozen.status, fmt::format("has descriptor {} ({}), which is not restored yet",
                                         found.number, found.link));
  return {};
}

// Parses a lock such as "1: POSIX  ADVISORY  WRITE 30909 fe:00:9978613 5 14". The last two words
// are the first and the last byte that is locked; the last one may be EOF. Returns nothing for a
// lease or for a line of another form.
std::optional<FileLock> parse_lock(const std::string& line) {
  std::istringstream words(line);
  std::string order, kind, advice, access, owner, file, end;
  FileLock lock;
  if (!(words >> order >> kind >> advice >> access >> owner >> file >> lock.begin >> end))
    return std::nullopt;
  if (kind == "POSIX") {
    lock.kind = LockKind::process;
  } else if (kind == "OFDLCK") {
    lock.kind = LockKind::description;
  } else if (kind == "FLOCK") {
    lock.kind = LockKind::whole_description;
  } else {
    return std::nullopt;
  }
  lock.is_exclusive = access == "WRITE";
  std::uint64_t last = 0;
  if (end == "EOF") return lock;
  if (std::from_chars(end.data(), end.data() + end.size(), last).ec != std::errc() ||
      last < lock.begin) {
    return std::nullopt;
  }
  lock.bytes = last - lock.begin + 1;
  return lock;
}

// Records every lock once, even if several descriptors show it.
void dump_locks(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                std::uint32_t description) {
  for (const std::string& line : values_in(found.details, "lock")) {
    auto lock = parse_lock(line);
    if (!lock) {
      work.refuse(frozen.status,
                  fmt::format("holds a lock on descriptor {} ({}) that is not restored: {}",
                              found.number, found.link, line));
      continue;
    }
    lock->process = frozen.status.id;
    lock->number = static_cast<std::uint32_t>(found.number);
    const std::uint32_t owner = lock->kind == LockKind::process ? lock->process : 0;
    DumpWork::SeenLock seen{owner, description, *lock};
    seen.lock.process = seen.lock.number = 0;
    if (std::ranges::find(work.locks, seen) != work.locks.end()) continue;
    work.locks.push_back(seen);
    work.result.job.locks.push_back(*lock);
  }
}

// Returns the number of bytes in a pipe, or -1 if the kernel does not tell it.
int bytes_in(int pipe) {
  int bytes = 0;
  return ::ioctl(pipe, FIONREAD, &bytes) == 0 ? bytes : -1;
}

// Returns whether the pipe keeps packets (O_DIRECT), so that every write is read by itself.
bool holds_packets(const Job& job, std::uint32_t channel) {
  return std::ranges::any_of(job.descriptions, [&](const Description& one) {
    return one.kind == DescriptionKind::pipe && one.which == channel && (one.flags & O_DIRECT) != 0;
  });
}

// Returns what a pipe holds and leaves it there: in one piece, or packet by packet.
Result<std::vector<ByteVector>> peek_pipe(int pipe, const Channel& channel) {
  const int bytes = bytes_in(pipe);
  if (bytes < 0) return fail(os_error("asking what a pipe holds", errno));
  std::vector<ByteVector> pieces;
  if (bytes == 0) return pieces;
  std::array<int, 2> copy{};
  if (::pipe2(copy.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return fail(os_error("making a pipe", errno));
  ::fcntl(copy[1], F_SETPIPE_SZ, channel.capacity_bytes);
  const ssize_t copied = ::tee(pipe, copy[1], static_cast<std::size_t>(bytes), SPLICE_F_NONBLOCK);
  int error = copied < 0 ? errno : 0;
  ssize_t got = 0;
  for (ssize_t left = copied; left > 0; left -= got) {
    ByteVector piece(static_cast<std::size_t>(left));
    got = ::read(copy[0], piece.data(), piece.size());
    if (got <= 0) error = got < 0 ? errno : EIO;
    if (got <= 0) break;
    piece.resize(static_cast<std::size_t>(got));
    const bool is_next = channel.type == kPackets || pieces.empty();
    is_next ? pieces.push_back(std::move(piece))
            : void(pieces.back().insert(pieces.back().end(), piece.begin(), piece.end()));
  }
  ::close(copy[0]);
  ::close(copy[1]);
  if (error != 0) return fail(os_error("reading what a pipe holds", error));
  if (copied != bytes) return fail(Code::io, "a pipe holds more than can be read from it");
  return pieces;
}

}  // namespace

bool DumpWork::IsBefore::operator()(const Seen& one, const Seen& other) const {
  if (one.link != other.link) return one.link < other.link;
  const long order = ::syscall(SYS_kcmp, one.here, other.here, KCMP_FILE, one.number, other.number);
  // A kernel that does not compare them leaves each descriptor an open file of its own.
  if (order < 0) return std::pair(one.here, one.number) < std::pair(other.here, other.number);
  return order == 1;
}

Status dump_descriptors(DumpWork& work, FrozenProcess& frozen, Process& process) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<pid_t> numbers,
                      numbers_in(fmt::format("/proc/{}/fd", frozen.here)));
  for (const pid_t number : numbers) {
    DIAPAUSE_TRY_ASSIGN(const Found found, look_at(frozen.here, number));
    const DumpWork::Seen seen{frozen.here, number, found.link};
    const auto [known, is_new] =
        work.known.try_emplace(seen, static_cast<std::uint32_t>(work.seen.size()));
    const std::uint32_t index = known->second;
    if (is_new) {
      Description description;
      DIAPAUSE_TRY(describe(work, frozen, found, description));
      work.result.job.descriptions.push_back(std::move(description));
      work.seen.push_back(seen);
    }
    dump_locks(work, frozen, found, index);
    const bool closes = (found.number_of("flags", 8) & O_CLOEXEC) != 0;
    process.descriptors.push_back({static_cast<std::uint32_t>(number), index, closes});
  }
  return {};
}

Status dump_channels(DumpWork& work) {
  Job& job = work.result.job;
  for (std::uint32_t i = 0; i < job.channels.size(); ++i) {
    bool has_read_end = false, has_write_end = false;
    const DumpWork::Seen* reader = nullptr;
    const DumpWork::Seen* any = nullptr;
    for (std::size_t d = 0; d < job.descriptions.size(); ++d) {
      const Description& one = job.descriptions[d];
      if (one.kind != DescriptionKind::pipe || one.which != i) continue;
      any = &work.seen[d];
      if ((one.flags & O_ACCMODE) != O_WRONLY) reader = any;
      has_read_end = has_read_end || (one.flags & O_ACCMODE) != O_WRONLY;
      has_write_end = has_write_end || (one.flags & O_ACCMODE) != O_RDONLY;
    }
    if (any == nullptr) continue;
    if (reader != nullptr) any = reader;
    DIAPAUSE_TRY_ASSIGN(const Borrowed pipe, Borrowed::of(any->here, any->number));
    pollfd asked{pipe.number(), 0, 0};
    ::poll(&asked, 1, 0);
    const bool is_alone = (asked.revents & (POLLHUP | POLLERR)) != 0;
    if (has_read_end != has_write_end && !is_alone && job.channels[i].path.empty()) {
      const auto status = status_of(fmt::format("/proc/{}", any->here));
      work.refuse(status.value_or(ProcStatus{}),
                  fmt::format("has descriptor {} ({}), whose other end is outside of the job",
                              any->number, any->link));
    }
    const int capacity = ::fcntl(pipe.number(), F_GETPIPE_SZ);
    job.channels[i].capacity_bytes = capacity < 0 ? 65536 : static_cast<std::uint32_t>(capacity);
    if (reader == nullptr) continue;
    if (holds_packets(job, i)) job.channels[i].type = kPackets;
    DIAPAUSE_TRY_ASSIGN(job.channels[i].forward, peek_pipe(pipe.number(), job.channels[i]));
  }
  return {};
}

}  // namespace diapause::process
