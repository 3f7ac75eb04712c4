#include "process/terminals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace diapause::process {
namespace {

constexpr int kWriteLimit_ms = 10'000;

template <class T>
ByteVector to_bytes(const T& value) {
  const ByteView bytes = as_byte_view(value);
  return {bytes.begin(), bytes.end()};
}

short poll_for(int file, short events, int limit_ms) {
  pollfd asked{file, events, 0};
  ::poll(&asked, 1, limit_ms);
  return asked.revents;
}

// Opens the end of a pseudo-terminal that programs have.
Result<int> open_other_end(int master, std::uint32_t flags) {
  const int opened = ::ioctl(master, TIOCGPTPEER, static_cast<int>(flags | O_NOCTTY | O_CLOEXEC));
  if (opened < 0) return fail(os_error("opening a pseudo-terminal", errno));
  return opened;
}

// Writes the bytes as they are given, whatever the terminal makes of line ends.
Status write_as_it_is(int master, ByteView bytes) {
  DIAPAUSE_TRY_ASSIGN(const int file, open_other_end(master, O_RDWR | O_NONBLOCK));
  termios before{};
  ::tcgetattr(file, &before);
  termios raw = before;
  raw.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  ::tcsetattr(file, TCSANOW, &raw);
  for (int waited_ms = 0; !bytes.empty() && waited_ms < kWriteLimit_ms;) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else {
      ++waited_ms;
      ::usleep(1000);
    }
  }
  ::tcsetattr(file, TCSANOW, &before);
  ::close(file);
  if (!bytes.empty()) return fail(Code::io, "the output that waited in a pseudo-terminal does not fit into it");
  return {};
}

}  // namespace

std::optional<std::uint32_t> number_of_terminal(int master) {
  unsigned number = 0;
  if (::ioctl(master, TIOCGPTN, &number) != 0) return std::nullopt;
  return number;
}

Result<Terminal> look_at_terminal(int master) {
  Terminal terminal;
  termios settings{};
  winsize size{};
  int is_locked = 0, has_packets = 0;
  if (::tcgetattr(master, &settings) != 0 || ::ioctl(master, TIOCGWINSZ, &size) != 0) {
    return fail(os_error("asking for the settings of a pseudo-terminal", errno));
  }
  ::ioctl(master, TIOCGPTLCK, &is_locked);
  ::ioctl(master, TIOCGPKT, &has_packets);
  terminal.settings = to_bytes(settings);
  terminal.size = to_bytes(size);
  terminal.is_locked = is_locked != 0;
  terminal.has_packets = has_packets != 0;
  terminal.is_hung_up = (poll_for(master, 0, 0) & POLLHUP) != 0;
  return terminal;
}

Result<ByteVector> take_output(int master) {
  ByteVector taken;
  std::array<std::byte, 4096> room{};
  // What a program has written comes through a thread of the kernel, which may take a moment.
  constexpr int kSettle_ms = 2;
  while ((poll_for(master, POLLIN, kSettle_ms) & POLLIN) != 0) {
    const ssize_t got = ::read(master, room.data(), room.size());
    if (got <= 0) break;
    taken.insert(taken.end(), room.begin(), room.begin() + got);
  }
  if (taken.empty()) return taken;
  DIAPAUSE_TRY(write_as_it_is(master, taken));
  return taken;
}

Result<int> open_terminal(const Terminal& from) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return fail(os_error("making a pseudo-terminal", errno));
  const int unlocked = 0, locked = 1;
  ::ioctl(master, TIOCSPTLCK, &unlocked);
  Status done;
  if (from.is_hung_up) {
    auto once = open_other_end(master, O_RDWR);
    if (once) ::close(*once);
  }
  if (!from.output.empty()) done = write_as_it_is(master, from.output);
  termios settings{};
  winsize size{};
  std::memcpy(&settings, from.settings.data(), std::min(from.settings.size(), sizeof settings));
  std::memcpy(&size, from.size.data(), std::min(from.size.size(), sizeof size));
  if (done && (::tcsetattr(master, TCSANOW, &settings) != 0 || ::ioctl(master, TIOCSWINSZ, &size) != 0)) {
    done = fail(os_error("setting up a pseudo-terminal", errno));
  }
  if (from.has_packets) ::ioctl(master, TIOCPKT, &locked);
  if (from.is_locked) ::ioctl(master, TIOCSPTLCK, &locked);
  if (done) return master;
  ::close(master);
  return fail(std::move(done.error()));
}

Result<int> open_terminal_again(int master, std::uint32_t flags) { return open_other_end(master, flags); }

}  // namespace diapause::process
