#include "process/openings.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace diapause::process {
namespace {

// Of the flags that F_GETFL tells, those that F_SETFL changes.
constexpr std::uint32_t kChangeable = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;

Status write_all(int file, std::uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(os_error("filling shared memory", errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

timespec to_timespec(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
}

Result<int> open_timer(const Description& one) {
  const int timer = ::timerfd_create(static_cast<int>(one.count), TFD_CLOEXEC);
  if (timer < 0) return fail(os_error("making a timerfd", errno));
  const itimerspec setting{to_timespec(one.period_ns), to_timespec(one.left_ns)};
  ::timerfd_settime(timer, 0, &setting, nullptr);
  return timer;
}

Result<int> open_signals(const Description& one) {
  // The kernel's set has 8 bytes, that of the library more.
  const auto opened = static_cast<int>(::syscall(SYS_signalfd4, -1, &one.count, sizeof one.count, SFD_CLOEXEC));
  if (opened < 0) return fail(os_error("making a signalfd", errno));
  return opened;
}

}  // namespace

// Behind all numbers that the job uses, so that these can be given out in any order.
Result<int> Openings::raise(int number) const {
  const int raised = ::fcntl(number, F_DUPFD_CLOEXEC, lowest_);
  const int error = errno;
  ::close(number);
  if (raised < 0) return fail(os_error("opening the files of the job (see ulimit -n)", error));
  return raised;
}

Status Openings::open_memory(const SharedMemory& memory) {
  int opened = -1;
  if (memory.kind == SharedKind::file) {
    opened = ::open(memory.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, static_cast<mode_t>(memory.mode));
    if (opened < 0) return fail(os_error("opening " + memory.path + ", which the job had mapped", errno));
  } else if (memory.kind == SharedKind::anonymous) {
    opened = ::memfd_create("diapause", MFD_CLOEXEC);
    if (opened < 0) return fail(os_error("making shared memory", errno));
  } else {
    return fail(Code::mismatch, "segments of System V cannot be restored yet");
  }
  DIAPAUSE_TRY_ASSIGN(opened, raise(opened));
  memories_.push_back(opened);
  if (::ftruncate(opened, static_cast<off_t>(memory.bytes)) == 0) return {};
  return fail(os_error("making shared memory of " + std::to_string(memory.bytes) + " bytes", errno));
}

Status Openings::fill_memories(const Job& job, const std::vector<StoredContents>& contents, const ReadContents& read) {
  for (const SharedMemory& memory : job.memories) DIAPAUSE_TRY(open_memory(memory));
  for (const StoredContents& one : contents) {
    if (one.process != 0) continue;
    const int to = memories_[one.shared];
    DIAPAUSE_TRY(
        read(one, [&](std::uint64_t offset, ByteView bytes) { return write_all(to, one.offset + offset, bytes); }));
  }
  return {};
}

// As it was when the image was made: a program goes on writing where it was, and what it has written since is gone.
Result<int> Openings::open_file(const Description& one) const {
  const auto flags = static_cast<int>(one.flags & ~static_cast<std::uint32_t>(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY));
  const int file = ::open(one.path.c_str(), flags | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + one.path + ", which the job had open", errno));
  struct stat now {};
  if (::fstat(file, &now) != 0 || !S_ISREG(now.st_mode) || (flags & O_PATH) != 0) return file;
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  const bool is_writable = (flags & O_ACCMODE) != O_RDONLY;
  Status sound;
  if (bytes < one.bytes) {
    sound = fail(Code::mismatch,
                 fmt::format("{} had {} bytes when the image was made, and has {} now", one.path, one.bytes, bytes));
  } else if (is_writable && bytes > one.bytes && ::ftruncate(file, static_cast<off_t>(one.bytes)) != 0) {
    sound = fail(os_error("cutting " + one.path + " to the length that it had", errno));
  }
  if (!sound) {
    ::close(file);
    return fail(std::move(sound.error()));
  }
  ::lseek(file, static_cast<off_t>(one.offset), SEEK_SET);
  return file;
}

Status Openings::open_channels(const Job& job) {
  for (const Channel& channel : job.channels) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(os_error("making a pipe", errno));
    Ends& made = channels_.emplace_back();
    made = {ends[0], ends[1]};
    DIAPAUSE_TRY_ASSIGN(made.read, raise(ends[0]));
    DIAPAUSE_TRY_ASSIGN(made.write, raise(ends[1]));
    ::fcntl(made.write, F_SETPIPE_SZ, channel.capacity_bytes);
    for (const ByteVector& piece : channel.forward) {
      if (::write(made.write, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) {
        return fail(os_error("filling a pipe", errno));
      }
    }
  }
  return {};
}

Result<int> Openings::open_description(const Job& job, const Description& one) {
  int opened = -1;
  switch (one.kind) {
    case DescriptionKind::standard:
      opened = ::dup(static_cast<int>(one.which));
      if (opened < 0) opened = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      break;
    case DescriptionKind::file:
      return open_file(one);
    case DescriptionKind::device:
      opened = ::open(one.path.c_str(), static_cast<int>(one.flags & O_ACCMODE) | O_CLOEXEC);
      break;
    case DescriptionKind::pipe:
      opened = ::dup(one.is_write_end ? channels_[one.which].write : channels_[one.which].read);
      break;
    case DescriptionKind::counter:
      opened = ::eventfd(0, EFD_CLOEXEC | (one.is_semaphore ? EFD_SEMAPHORE : 0));
      if (opened >= 0 && one.count > 0) (void)!::write(opened, &one.count, sizeof one.count);
      break;
    case DescriptionKind::memory: {
      const std::string path = fmt::format("/proc/self/fd/{}", memories_[one.which]);
      opened = ::open(path.c_str(), static_cast<int>(one.flags & (O_ACCMODE | O_APPEND)) | O_CLOEXEC);
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
    case DescriptionKind::socket_pair:
      return fail(Code::mismatch, "sockets cannot be restored yet");
  }
  (void)job;
  if (opened < 0) return fail(os_error("opening a file of the job again (" + one.path + ")", errno));
  return opened;
}

Result<Openings> Openings::open(const Job& job, const std::vector<StoredContents>& contents, const ReadContents& read) {
  Openings openings;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::uint32_t highest = 2;
  for (const Process& process : job.processes) {
    for (const Descriptor& one : process.descriptors) highest = std::max(highest, one.number);
  }
  openings.lowest_ = static_cast<int>(highest) + 1;
  DIAPAUSE_TRY(openings.fill_memories(job, contents, read));
  DIAPAUSE_TRY(openings.open_channels(job));
  for (const Description& one : job.descriptions) {
    DIAPAUSE_TRY_ASSIGN(const int opened, openings.open_description(job, one));
    const bool is_ours = one.kind == DescriptionKind::standard;
    DIAPAUSE_TRY_ASSIGN(const int raised, openings.raise(opened));
    openings.descriptions_.push_back(raised);
    if (!is_ours && (one.flags & O_PATH) == 0) {
      ::fcntl(raised, F_SETFL, static_cast<int>(one.flags & kChangeable));
    }
  }
  for (const Ends& ends : openings.channels_) {
    ::close(ends.read);
    ::close(ends.write);
  }
  openings.channels_.clear();
  return openings;
}

Openings::Openings(Openings&& other) noexcept
    : lowest_(other.lowest_),
      descriptions_(std::exchange(other.descriptions_, {})),
      memories_(std::exchange(other.memories_, {})),
      channels_(std::exchange(other.channels_, {})) {}

Openings::~Openings() { close_all(); }

std::vector<int> Openings::numbers() const {
  std::vector<int> all = descriptions_;
  all.insert(all.end(), memories_.begin(), memories_.end());
  return all;
}

void Openings::close_all() {
  for (const int number : descriptions_) ::close(number);
  for (const int number : memories_) ::close(number);
  for (const Ends& ends : channels_) {
    ::close(ends.read);
    ::close(ends.write);
  }
  descriptions_.clear();
  memories_.clear();
  channels_.clear();
}

}  // namespace diapause::process
