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
#include <utility>

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
  if (!bytes.empty())
    return fail(Code::io, "the output that waited in a pseudo-terminal does not fit into it");
  return {};
}

// Keeps the end open that programs have, with its settings as they are given back at the end.
class OpenEnd {
 public:
  static Result<OpenEnd> of(int master) {
    DIAPAUSE_TRY_ASSIGN(const int file, open_other_end(master, O_RDWR | O_NONBLOCK));
    return OpenEnd(file);
  }
  OpenEnd(OpenEnd&& other) noexcept
      : file_(std::exchange(other.file_, -1)), settings_(other.settings_) {}
  OpenEnd& operator=(OpenEnd&&) = delete;
  ~OpenEnd() {
    if (file_ < 0) return;
    ::tcsetattr(file_, TCSANOW, &settings_);
    ::close(file_);
  }

  bool has_lines() const { return (settings_.c_lflag & ICANON) != 0; }
  const termios& settings() const { return settings_; }
  void set(const termios& settings) const { ::tcsetattr(file_, TCSANOW, &settings); }

  // Reads what waits, up to the end of a line if the terminal keeps lines. Returns nothing if
  // nothing waits.
  std::optional<ByteVector> read() const {
    ByteVector room(8192);
    const ssize_t got = ::read(file_, room.data(), room.size());
    if (got < 0) return std::nullopt;
    room.resize(static_cast<std::size_t>(got));
    return room;
  }
  // Returns whether what a program writes does not get through now.
  bool is_stopped() const { return (poll_for(file_, POLLOUT, 0) & POLLOUT) == 0; }

 private:
  explicit OpenEnd(int file) : file_(file) { ::tcgetattr(file_, &settings_); }
  int file_;
  termios settings_{};
};

// Returns settings with which the terminal passes on everything as it is, but for lines if it keeps
// them.
termios plain_settings(const termios& from) {
  termios plain = from;
  plain.c_iflag = 0;
  plain.c_lflag = from.c_lflag & ICANON;
  std::ranges::fill(plain.c_cc, cc_t{_POSIX_VDISABLE});
  plain.c_cc[VMIN] = (from.c_lflag & ICANON) != 0 ? cc_t{_POSIX_VDISABLE} : cc_t{1};
  return plain;
}

cc_t byte_not_in(ByteView bytes) {
  for (unsigned value = 1; value < 256; ++value) {
    const bool is_line_end = value == '\n' || value == '\r';
    if (!is_line_end && std::ranges::find(bytes, static_cast<std::byte>(value)) == bytes.end()) {
      return static_cast<cc_t>(value);
    }
  }
  return _POSIX_VDISABLE;
}

Status type(int master, ByteView bytes) {
  for (int waited_ms = 0; !bytes.empty() && waited_ms < kWriteLimit_ms;) {
    const ssize_t written = ::write(master, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else {
      ++waited_ms;
      ::usleep(1000);
    }
  }
  if (bytes.empty()) return {};
  return fail(Code::io, "what was typed at a pseudo-terminal cannot be given back to it");
}

// Types bytes behind which the terminal has room for one more. The kernel passes them on in a
// thread of its own, by the settings that the terminal has when it comes to that. Therefore a byte
// is typed behind them that stops the output of the terminal, and this returns when that has
// stopped. The output must have room, so that nothing else keeps it from getting through.
Status type_and_await(int master, const OpenEnd& end, termios settings, ByteVector bytes) {
  const termios before = settings;
  end.set(before);  // the output goes on, if a user has stopped it
  settings.c_cc[VSTOP] = byte_not_in(bytes);
  settings.c_iflag |= IXON;
  bytes.push_back(static_cast<std::byte>(settings.c_cc[VSTOP]));
  end.set(settings);
  DIAPAUSE_TRY(type(master, bytes));
  constexpr int kLooksInMs = 20;
  for (int look = 0; !end.is_stopped(); ++look) {
    if (look == kWriteLimit_ms * kLooksInMs)
      return fail(Code::io, "what was typed at a pseudo-terminal does not come to it");
    ::usleep(1000 / kLooksInMs);
  }
  end.set(before);
  return {};
}

// A part is so short that there is a byte that it has not.
Status type_again(int master, const OpenEnd& end, const TypedInput& one) {
  constexpr std::size_t kPart = 128;
  const bool is_ended = !one.bytes.empty() && one.bytes.back() == std::byte{'\n'};
  ByteView rest = one.bytes;
  do {
    const ByteView part = rest.first(std::min(rest.size(), kPart));
    rest = rest.subspan(part.size());
    termios settings = plain_settings(end.settings());
    ByteVector bytes(part.begin(), part.end());
    if (one.is_line && !is_ended && rest.empty()) {
      settings.c_cc[VEOF] = byte_not_in(bytes);
      bytes.push_back(static_cast<std::byte>(settings.c_cc[VEOF]));
    }
    DIAPAUSE_TRY(type_and_await(master, end, settings, std::move(bytes)));
  } while (!rest.empty());
  return {};
}

// The kernel holds so many bytes of input, a mark for each line without an end among them. What is
// typed beyond is passed on when programs have read.
Status type_all_again(int master, const std::vector<TypedInput>& typed) {
  constexpr std::size_t kMostHeld = 4096 - 2;
  if (typed.empty()) return {};
  DIAPAUSE_TRY_ASSIGN(const OpenEnd end, OpenEnd::of(master));
  std::size_t held = 0;
  for (const TypedInput& one : typed) {
    held += one.bytes.size() + 1;
    DIAPAUSE_TRY(held < kMostHeld ? type_again(master, end, one) : type(master, one.bytes));
  }
  return {};
}

// Returns the input, which is out of the terminal then. A line that is not complete can be read
// only from a terminal that keeps no lines. A read that finds nothing has had the kernel pass on
// all that was typed.
Result<std::vector<TypedInput>> read_input(int master) {
  std::vector<TypedInput> typed;
  DIAPAUSE_TRY_ASSIGN(const OpenEnd end, OpenEnd::of(master));
  while (end.has_lines()) {
    auto line = end.read();
    if (!line) break;
    typed.push_back({0, true, std::move(*line)});
  }
  termios settings = end.settings();
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON);
  settings.c_cc[VMIN] = settings.c_cc[VTIME] = 0;
  end.set(settings);
  ByteVector rest;
  for (auto part = end.read(); part && !part->empty(); part = end.read())
    rest.insert(rest.end(), part->begin(), part->end());
  if (!rest.empty()) typed.push_back({0, false, std::move(rest)});
  return typed;
}

// A look for output that finds nothing has had the kernel pass on all that was written.
ByteVector read_output(int master) {
  ByteVector taken;
  std::array<std::byte, 4096> room{};
  while ((poll_for(master, POLLIN, 0) & POLLIN) != 0) {
    const ssize_t got = ::read(master, room.data(), room.size());
    if (got <= 0) break;
    taken.insert(taken.end(), room.begin(), room.begin() + got);
  }
  return taken;
}

// Input is given back first, while the output has room.
Status give_back(int master, const Unread& unread) {
  const Status typed = type_all_again(master, unread.typed);
  const Status written = unread.output.empty() ? Status{} : write_as_it_is(master, unread.output);
  return typed ? written : typed;
}

}  // namespace

// Input comes first, because the terminal may still have to echo it.
Result<Unread> take_unread(int master, TerminalInput input) {
  Unread unread;
  if (input == TerminalInput::is_taken) {
    DIAPAUSE_TRY_ASSIGN(unread.typed, read_input(master));
  }
  unread.output = read_output(master);
  DIAPAUSE_TRY(give_back(master, unread));
  return unread;
}

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

Result<int> open_terminal(const Terminal& from, const std::vector<TypedInput>& typed) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return fail(os_error("making a pseudo-terminal", errno));
  const int unlocked = 0, locked = 1;
  ::ioctl(master, TIOCSPTLCK, &unlocked);
  if (from.is_hung_up) {
    auto once = open_other_end(master, O_RDWR);
    if (once) ::close(*once);
  }
  termios settings{};
  winsize size{};
  std::memcpy(&settings, from.settings.data(), std::min(from.settings.size(), sizeof settings));
  std::memcpy(&size, from.size.data(), std::min(from.size.size(), sizeof size));
  Status done;
  if (::tcsetattr(master, TCSANOW, &settings) != 0 || ::ioctl(master, TIOCSWINSZ, &size) != 0)
    done = fail(os_error("setting up a pseudo-terminal", errno));
  if (done) done = give_back(master, {from.output, typed});
  if (from.has_packets) ::ioctl(master, TIOCPKT, &locked);
  if (from.is_locked) ::ioctl(master, TIOCSPTLCK, &locked);
  if (done) return master;
  ::close(master);
  return fail(std::move(done.error()));
}

Result<int> open_terminal_again(int master, std::uint32_t flags) {
  return open_other_end(master, flags);
}

}  // namespace diapause::process
