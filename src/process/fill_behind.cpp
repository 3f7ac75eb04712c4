#include "process/fill_behind.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "process/foreign_userfault.hpp"

namespace diapause::process {
namespace {

// A page is offered this often while the memory changes, first at once, then each millisecond.
constexpr int kTriesAtOnce = 100, kMostTries = 60'000;

std::uint64_t page_of(std::uint64_t address) { return address / kPageBytes * kPageBytes; }

void kill_process(int process) { ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0); }

void await_end(int process) {
  pollfd asked{process, POLLIN, 0};
  while (::poll(&asked, 1, -1) < 0 && errno == EINTR) {
  }
}

// The guard is a process that outlives this one. It shares the table of descriptors, so that no
// userfaultfd is closed before the job has ended, not even one that this process is just being
// given: the pages that are missing would be zeros then. It was forked from a process with threads,
// and must not allocate memory.
[[noreturn]] void be_guard(int agent, int keeper) {
  ::setsid();
  ::prctl(PR_SET_NAME, "fill-guard");
  await_end(agent);
  kill_process(keeper);
  await_end(keeper);
  ::_exit(0);
}

int open_process(pid_t process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }

// Starts the guard, and returns a descriptor of it. Another process starts it, so that it is no
// child of this one, which has the job as its only child.
Result<int> start_guard(int keeper) {
  std::array<int, 2> ends{};
  if (keeper < 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(os_error("starting a process that guards the job", errno));
  const int own = open_process(::getpid());
  const auto helper = static_cast<pid_t>(::syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0));
  if (helper == 0) {
    int made = -1;
    if (::syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD, 0, &made, 0, 0) == 0) be_guard(own, keeper);
    (void)!::write(ends[1], &made, sizeof made);
    ::_exit(0);
  }
  const int error = errno;
  if (helper > 0) ::waitpid(helper, nullptr, __WALL);
  ::close(ends[1]);  // the helper's, too, was closed before
  int guard = -1;
  if (::read(ends[0], &guard, sizeof guard) != sizeof guard) guard = -1;
  ::close(ends[0]);
  if (guard >= 0) return guard;
  return fail(os_error("starting a process that guards the job", helper < 0 ? error : EAGAIN));
}

}  // namespace

FillBehind::FillBehind(pid_t keeper, ReadPiece read, std::function<void()> filled)
    : keeper_(open_process(keeper)), read_(std::move(read)), filled_(std::move(filled)) {}

FillBehind::~FillBehind() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  if (wake_ >= 0) ::eventfd_write(wake_, 1);
  thread_.reset();
  if (!spaces_.empty()) {
    kill_process(keeper_);
    await_end(keeper_);
  }
  spaces_.clear();
  end_guard();
  for (const int one : {wake_, keeper_}) {
    if (one >= 0) ::close(one);
  }
}

bool FillBehind::is_filling() const {
  const std::lock_guard lock(mutex_);
  return !spaces_.empty();
}

void FillBehind::end_guard() {
  if (guard_ < 0) return;
  kill_process(guard_);
  await_end(guard_);
  ::close(std::exchange(guard_, -1));
}

Status FillBehind::begin_work() {
  if (thread_ != nullptr) return {};
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return fail(os_error("making an eventfd", errno));
  DIAPAUSE_TRY_ASSIGN(guard_, start_guard(keeper_));
  DIAPAUSE_TRY_ASSIGN(sys::Thread started, sys::Thread::start([this] { work(); }));
  thread_ = std::make_unique<sys::Thread>(std::move(started));
  return {};
}

Status FillBehind::take(const Calls& calls, const ThreadName& thread,
                        const std::vector<Part>& parts) {
  DIAPAUSE_TRY_ASSIGN(ForeignUserfault userfault,
                      ForeignUserfault::open(calls, thread, ForeignUserfault::Use::give_pages));
  auto space = std::make_unique<Space>(std::move(userfault));
  for (const Part& part : parts) {
    DIAPAUSE_TRY(space->userfault.watch(part.area));
    for (const StoredContents* one : part.contents)
      space->missing.emplace(one->offset, Missing{one->offset + one->bytes, one, 0});
  }
  // The guard is there only if something is missing: it ends the job with this process.
  DIAPAUSE_TRY(begin_work());
  const std::lock_guard lock(mutex_);
  spaces_.push_back(std::move(space));
  ::eventfd_write(wake_, 1);
  return {};
}

void FillBehind::begin() {
  const std::lock_guard lock(mutex_);
  fills_all_ = true;
  if (wake_ >= 0) ::eventfd_write(wake_, 1);
}

Status FillBehind::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

Status FillBehind::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !result_ || spaces_.empty(); });
  return result_;
}

// This is the thread. It alone changes what is missing, in the order in which the kernel tells of
// it.
void FillBehind::work() {
  while (true) {
    std::vector<pollfd> asked = {{wake_, POLLIN, 0}};
    bool is_idle = true;
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      for (const auto& space : spaces_) {
        if (result_) asked.push_back({space->userfault.fd(), POLLIN, 0});
      }
      is_idle = !fills_all_ || spaces_.empty() || !result_;
    }
    (void)::poll(asked.data(), asked.size(), is_idle ? -1 : 0);
    eventfd_t ignored = 0;
    (void)::eventfd_read(wake_, &ignored);
    const std::lock_guard lock(mutex_);
    if (result_) serve();
  }
}

void FillBehind::serve() {
  Status done;
  // Spaces of forked processes are added meanwhile.
  for (std::size_t i = 0; i < spaces_.size() && done; ++i) {
    take_messages(*spaces_[i]);
    done = serve_waits(*spaces_[i]);
  }
  if (done && fills_all_ && !spaces_.empty() && !spaces_.front()->missing.empty())
    done = fill_at(*spaces_.front(), spaces_.front()->missing.begin()->first);
  if (!done) return give_up(std::move(done.error()));
  if (!fills_all_) return;
  // Where nothing is missing, nothing has to be watched.
  std::erase_if(spaces_, [](const auto& space) { return space->missing.empty(); });
  if (!spaces_.empty()) return;
  end_guard();
  filled_();
  changed_.notify_all();
}

void FillBehind::give_up(Error why) {
  kill_process(keeper_);
  result_ = fail(std::move(why));
  changed_.notify_all();
}

Status FillBehind::serve_waits(Space& space) {
  while (!space.waits.empty()) {
    const std::uint64_t address = space.waits.back();
    space.waits.pop_back();
    DIAPAUSE_TRY(fill_at(space, address));
  }
  return {};
}

// Takes all that the kernel has to tell of a process.
void FillBehind::take_messages(Space& space) {
  uffd_msg message;
  while (::read(space.userfault.fd(), &message, sizeof message) == sizeof message) {
    const auto& told = message.arg;
    switch (message.event) {
      case UFFD_EVENT_PAGEFAULT:
        space.waits.push_back(page_of(told.pagefault.address));
        break;
      case UFFD_EVENT_FORK: {
        auto child =
            std::make_unique<Space>(ForeignUserfault::of_forked(static_cast<int>(told.fork.ufd)));
        child->missing = space.missing;
        spaces_.push_back(std::move(child));
        break;
      }
      case UFFD_EVENT_REMAP:
        move(space, {told.remap.from, told.remap.from + told.remap.len}, told.remap.to);
        break;
      default:  // UFFD_EVENT_REMOVE and UFFD_EVENT_UNMAP
        forget(space, {told.remove.start, told.remove.end});
    }
  }
}

void FillBehind::forget(Space& space, const Extent& range) {
  auto at = space.missing.upper_bound(range.begin);
  if (at != space.missing.begin()) --at;
  while (at != space.missing.end() && at->first < range.end) {
    const std::uint64_t begin = at->first;
    const Missing one = at->second;
    if (one.end <= range.begin) {
      ++at;
      continue;
    }
    at = space.missing.erase(at);
    if (begin < range.begin) space.missing[begin] = {range.begin, one.contents, one.offset};
    if (one.end > range.end)
      space.missing[range.end] = {one.end, one.contents, one.offset + (range.end - begin)};
    at = space.missing.lower_bound(range.end);
  }
}

void FillBehind::move(Space& space, const Extent& from, std::uint64_t to) {
  std::map<std::uint64_t, Missing> moved;
  for (const auto& [begin, one] : space.missing) {
    const std::uint64_t first = std::max(begin, from.begin), end = std::min(one.end, from.end);
    if (first >= end) continue;
    moved[to + (first - from.begin)] = {to + (end - from.begin), one.contents,
                                        one.offset + (first - begin)};
  }
  forget(space, from);
  forget(space, {to, to + (from.end - from.begin)});
  space.missing.merge(moved);
}

// Fills the piece of contents that belongs to `address`, as far as it is still missing there. A
// piece without contents is filled with zeros.
Status FillBehind::fill_at(Space& space, std::uint64_t address) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto found = space.missing.upper_bound(address);
    if (found != space.missing.begin()) --found;
    const bool is_missing =
        found != space.missing.end() && found->first <= address && address < found->second.end;
    const std::uint64_t begin = is_missing ? found->first : 0;
    const Missing one = is_missing ? found->second : Missing{};
    std::uint64_t to = address;
    ByteView bytes;
    if (is_missing) {
      DIAPAUSE_TRY_ASSIGN(const SoundPiece piece,
                          read_(*one.contents, one.offset + (address - begin)));
      const std::uint64_t first = std::max(one.offset, piece.offset);
      const std::uint64_t end =
          std::min(one.offset + (one.end - begin), piece.offset + piece.bytes.size());
      to = begin + (first - one.offset);
      bytes = piece.bytes.subspan(first - piece.offset, end - first);
    }
    DIAPAUSE_TRY_ASSIGN(const Given given, give(space, to, bytes));
    if (given != Given::changed) return {};
    if (tries > kTriesAtOnce) ::usleep(1000);
    take_messages(space);
  }
  return fail(Code::timeout, "the kernel does not tell how the job's memory changes");
}

// Gives a process pages that it lacks, and zeros where `bytes` is empty. The kernel refuses while
// it has to tell of a change of the memory: then nothing more is given.
Result<FillBehind::Given> FillBehind::give(Space& space, std::uint64_t address, ByteView bytes) {
  const bool is_zeros = bytes.empty();
  std::uint64_t left = is_zeros ? kPageBytes : bytes.size();
  std::uint64_t step = left;
  while (left > 0) {
    step = std::min(step, left);
    std::int64_t moved = 0;
    int error = 0;
    if (is_zeros) {
      uffdio_zeropage request{{address, step}, 0, 0};
      if (::ioctl(space.userfault.fd(), UFFDIO_ZEROPAGE, &request) != 0) error = errno;
      moved = request.zeropage;
    } else {
      uffdio_copy request{address, reinterpret_cast<std::uint64_t>(bytes.data()), step, 0, 0};
      if (::ioctl(space.userfault.fd(), UFFDIO_COPY, &request) != 0) error = errno;
      moved = request.copy;
    }
    std::uint64_t done = moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
    if (error == ESRCH) {
      space.missing.clear();  // the process has ended, or has called exec
      space.waits.clear();
      return Given::gone;
    }
    if (done == 0 && error == EAGAIN) return Given::changed;
    if (done == 0 && error == ENOENT && step > kPageBytes) {
      step = kPageBytes;  // it is of several mappings, or partly of none
      continue;
    }
    if (done == 0 && (error == EEXIST || error == ENOENT)) {
      // The page is there, or can be touched by nobody any more.
      uffdio_range page{address, kPageBytes};
      (void)::ioctl(space.userfault.fd(), UFFDIO_WAKE, &page);
      done = kPageBytes;
    }
    if (done == 0) return fail(os_error("giving the job its memory", error));
    forget(space, {address, address + done});
    if (!is_zeros) bytes = bytes.subspan(done);
    address += done;
    left -= done;
  }
  return Given::all;
}

}  // namespace diapause::process
