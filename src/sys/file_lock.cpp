#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::size_t kLongestQuote = 200;

// The first line of what the holder wrote. It may be anything, so only printable ASCII gets into our message.
std::string holder_of(const File& file) {
  std::array<char, kLongestQuote> text{};
  const auto bytes = std::as_writable_bytes(std::span(text));
  const std::int64_t count = uninterrupted([&] { return file.kernel().pread(file.fd(), bytes, 0); });
  if (count <= 0) return "somebody who has not written a name into it yet";
  std::string line(text.data(), static_cast<std::size_t>(count));
  line.resize(std::min(line.size(), line.find('\n')));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

}  // namespace

Result<FileLock> FileLock::acquire(const Directory& directory, std::string_view name, std::string_view holder_text,
                                   double wait_s) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  // Not truncated: the text in it belongs to whoever holds the lock.
  DIAPAUSE_TRY_ASSIGN(File file, open_checked(directory, name, O_RDWR | O_CREAT));
  for (;;) {
    const int result = uninterrupted([&] { return directory.kernel().try_lock(file.fd()); });
    if (result == 0) break;
    if (result != -EWOULDBLOCK) return fail(path_error("lock", file.path(), result));
    if (std::chrono::duration<double>(Clock::now() - start).count() >= wait_s) {
      return fail(Code::busy, fmt::format("{} is locked by: {}", file.path(), holder_of(file)), EWOULDBLOCK);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  FileLock lock(std::move(file));
  // The lock is ours whether or not its text can be written: a full disk must not keep anybody from what lies on it.
  if (lock.file_.truncate(0)) (void)lock.file_.write_all(as_byte_view(holder_text), 0);
  return lock;
}

bool FileLock::is_held(const Directory& directory, std::string_view name) {
  const auto file = directory.open_file(name, Access::read);
  if (!file) return false;
  const int result = uninterrupted([&] { return directory.kernel().try_lock(file->fd()); });
  if (result == 0) directory.kernel().unlock(file->fd());
  return result == -EWOULDBLOCK;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FileLock::~FileLock() {
  if (file_.is_open()) file_.kernel().unlock(file_.fd());
}

}  // namespace diapause::sys
