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
  bool has_input() const {
    int waiting = 0;
    return ::ioctl(file_, FIONREAD, &waiting) == 0 && waiting > 0;
  }
  // The kernel passes on what was typed in a thread of its own. To be asked for input lets it do so
  // first.
  void await_input() const { poll_for(file_, POLLIN, 0); }

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

cc_t byte_not_in(const ByteVector& bytes) {
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

Status type_again(int master, const OpenEnd& end, const TypedInput& one) {
  constexpr int kPass_us = 2000;
  termios settings = plain_settings(end.settings());
  ByteVector bytes = one.bytes;
  const bool is_ended = !bytes.empty() && bytes.back() == std::byte{'\n'};
  if (one.is_line && !is_ended) {
    settings.c_cc[VEOF] = byte_not_in(bytes);
    bytes.push_back(static_cast<std::byte>(settings.c_cc[VEOF]));
  }
  end.set(settings);
  DIAPAUSE_TRY(type(master, bytes));
  end.await_input();
  // Behind a complete line the kernel passes on more at its own time.
  ::usleep(kPass_us);
  return {};
}

Status type_all_again(int master, const std::vector<TypedInput>& typed) {
  if (typed.empty()) return {};
  DIAPAUSE_TRY_ASSIGN(const OpenEnd end, OpenEnd::of(master));
  for (const TypedInput& one : typed) DIAPAUSE_TRY(type_again(master, end, one));
  return {};
}

}  // namespace

// A line that is not complete can be read only from a terminal that keeps no lines.
Result<std::vector<TypedInput>> take_input(int master) {
  std::vector<TypedInput> typed;
  {
    DIAPAUSE_TRY_ASSIGN(const OpenEnd end, OpenEnd::of(master));
    end.await_input();
    while (end.has_lines()) {
      auto line = end.read();
      if (!line) break;
      typed.push_back({0, true, std::move(*line)});
    }
    termios settings = end.settings();
    settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    settings.c_cc[VMIN] = settings.c_cc[VTIME] = 0;
    end.set(settings);
    ByteVector rest;
    while (end.has_input()) {
      const auto part = end.read();
      if (!part || part->empty()) break;
      rest.insert(rest.end(), part->begin(), part->end());
    }
    if (!rest.empty()) typed.push_back({0, false, std::move(rest)});
  }
  DIAPAUSE_TRY(type_all_again(master, typed));
  return typed;
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

Result<ByteVector> take_output(int master) {
  ByteVector taken;
  std::array<std::byte, 4096> room{};
  // Output of a program comes through a thread of the kernel, which may take a moment.
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

Result<int> open_terminal(const Terminal& from, const std::vector<TypedInput>& typed) {
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
  if (done &&
      (::tcsetattr(master, TCSANOW, &settings) != 0 || ::ioctl(master, TIOCSWINSZ, &size) != 0)) {
    done = fail(os_error("setting up a pseudo-terminal", errno));
  }
  if (done) done = type_all_again(master, typed);
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
