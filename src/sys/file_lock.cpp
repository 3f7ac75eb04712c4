#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "sys/held_file.hpp"
#include "sys/lock_holders.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::size_t kLongestQuote = 200;

// Returns the first line that the holder wrote. The file may hold anything, so only printable ASCII
// enters our message.
std::string holder_of(const File& file) {
  std::array<char, kLongestQuote> text{};
  const auto bytes = std::as_writable_bytes(std::span(text));
  const std::int64_t count =
      uninterrupted([&] { return file.kernel().pread(file.fd(), bytes, 0); });
  if (count <= 0) return "somebody who has not written a name into it yet";
  std::string line(text.data(), static_cast<std::size_t>(count));
  line.resize(std::min(line.size(), line.find('\n')));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

// Returns whether the file system, or its mount, has no such lock (Lustre without -o flock, old
// NFS).
bool has_none(int result) {
  return result == -ENOSYS || result == -EOPNOTSUPP || result == -ENOLCK;
}

enum class Kind { flock, range, file };

struct Attempt {
  int result = 0;
  Kind kind = Kind::flock;
  std::unique_ptr<HeldFile> held;
};

// The result is 0, -EWOULDBLOCK or another -errno.
Attempt attempt(const Directory& directory, const File& file, const std::string& name,
                HeldFile::Watch& watch) {
  Kernel& kernel = directory.kernel();
  Attempt done;
  done.result = uninterrupted([&] { return kernel.try_lock(file.fd()); });
  if (!has_none(done.result)) return done;
  done.kind = Kind::range;
  done.result = uninterrupted([&] { return kernel.try_range_lock(file.fd()); });
  if (done.result == -EACCES) done.result = -EWOULDBLOCK;
  if (!has_none(done.result)) return done;
  done.kind = Kind::file;
  auto held = HeldFile::acquire(directory, name + ".held", watch);
  if (held) {
    done.result = 0;
    done.held = std::make_unique<HeldFile>(std::move(*held));
  } else {
    done.result = held.error().code == Code::busy
                      ? -EWOULDBLOCK
                      : -(held.error().os_errno != 0 ? held.error().os_errno : EIO);
  }
  return done;
}

// Describes the holder. The text in the file names the process that took the lock; the present
// holder may be a child of it that inherited the lock.
std::string who_holds(const File& file) {
  const std::string written = holder_of(file);
  const std::string now = lock_holders(file);
  const std::string taker = written.substr(0, written.find(" on "));  // "process 4711"
  if (now.empty() || (taker.starts_with("process ") && now.find(taker + " ") != std::string::npos))
    return written;
  return fmt::format("{}; it is held now by {}, which has inherited it: end that first", written,
                     now);
}

}  // namespace

FileLock::FileLock(File file) : file_(std::move(file)) {}

Result<FileLock> FileLock::acquire(const Directory& directory, std::string_view name,
                                   std::string_view holder_text, double wait_s) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  // The file is not truncated: its text belongs to whoever holds the lock.
  DIAPAUSE_TRY_ASSIGN(File file, open_checked(directory, name, O_RDWR | O_CREAT));
  HeldFile::Watch watch;
  for (;;) {
    Attempt done = attempt(directory, file, std::string(name), watch);
    if (done.result == 0) {
      FileLock lock(std::move(file));
      lock.is_range_ = done.kind == Kind::range;
      lock.held_ = std::move(done.held);
      // The lock is ours whether or not its text can be written. A full disk must not keep anybody
      // from the data on it.
      if (lock.file_.write_all(as_byte_view(holder_text), 0))
        (void)lock.file_.truncate(holder_text.size());
      return lock;
    }
    if (done.result != -EWOULDBLOCK) return fail(path_error("lock", file.path(), done.result));
    // A stale file of another machine shows only by not changing for a while.
    const double patience_s =
        done.kind == Kind::file && wait_s > 0 ? std::max(wait_s, HeldFile::kDead_s + 1) : wait_s;
    if (std::chrono::duration<double>(Clock::now() - start).count() >= patience_s) {
      return fail(Code::busy, fmt::format("{} is locked by: {}", file.path(), who_holds(file)),
                  EWOULDBLOCK);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

bool FileLock::is_held(const Directory& directory, std::string_view name) {
  const auto file = directory.open_file(name, Access::read);
  if (!file) return false;
  Kernel& kernel = directory.kernel();
  int result = uninterrupted([&] { return kernel.try_lock(file->fd()); });
  if (result == 0) kernel.unlock(file->fd());
  if (!has_none(result)) return result == -EWOULDBLOCK;
  const auto writable = directory.open_file(name, Access::read_write);
  if (!writable) return false;
  result = uninterrupted([&] { return kernel.try_range_lock(writable->fd()); });
  if (result == 0) kernel.unlock_range(writable->fd());
  if (!has_none(result)) return result == -EWOULDBLOCK || result == -EACCES;
  return HeldFile::is_held(directory, std::string(name) + ".held");
}

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::move(other.file_)), is_range_(other.is_range_), held_(std::move(other.held_)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(is_range_, other.is_range_);
  std::swap(held_, other.held_);
  return *this;
}

FileLock::~FileLock() {
  if (!file_.is_open()) return;
  if (held_) return;  // its destructor removes the file
  if (is_range_) {
    file_.kernel().unlock_range(file_.fd());
  } else {
    file_.kernel().unlock(file_.fd());
  }
}

}  // namespace diapause::sys
