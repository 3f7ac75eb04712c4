#include "process/make_socket.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "process/closed_connections.hpp"
#include "process/port_holders.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

constexpr int kClosedLimit_ms = 65'000,
              kPause_ms = 100;  // the kernel keeps closed connections for 60 s

// Removes a socket file that a killed job has left at the path. A socket to which a process listens
// stays.
void remove_stale(const std::string& path, int type) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  Owned probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  address.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&address) + sizeof(sa_family_t), path.c_str(),
              path.size() + 1);
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + path.size() + 1);
  const bool is_alive =
      ::connect(probe.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  if (!is_alive && errno == ECONNREFUSED) ::unlink(path.c_str());
}

// Returns the error, and 0 if the socket has the address now.
int try_to_bind(int socket, const ByteVector& address) {
  return ::bind(socket, address_in(address), length_of(address)) == 0 ? 0 : errno;
}

int bind_without_closed(int socket, const ByteVector& address) {
  const std::vector<Owned> callers = end_closed_connections(port_of(address));
  constexpr int kTries = 20;
  int error = EADDRINUSE;
  for (int i = 0; error == EADDRINUSE && !callers.empty() && i < kTries; ++i) {
    error = try_to_bind(socket, address);
    if (error == EADDRINUSE) ::usleep(1000);
  }
  return error;
}

bool is_held_by_closed(const Status& bound, const ByteVector& address) {
  return !bound && bound.error().os_errno == EADDRINUSE && has_closed_connections(port_of(address));
}

}  // namespace

Visit::Visit(const std::string& directory) {
  if (directory.empty()) return;
  before_ = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  (void)!::chdir(directory.c_str());
}

Visit::~Visit() {
  if (before_ < 0) return;
  (void)!::fchdir(before_);
  ::close(before_);
}

Error socket_error(const ByteVector& address, int error) {
  Error made = os_error("making " + text_of_address(address) + " of the job again", error);
  if (error != EADDRINUSE) return made;
  made.code = Code::busy;
  const std::string holders = port_of(address) == 0 ? "" : holders_of_port(port_of(address));
  made.message += fmt::format(
      ": {} by now, so the job can be restarted when that has ended, or on another machine",
      holders.empty() ? "another program has it" : holders + " has this port");
  return made;
}

Result<Owned> make_socket(const Socket& from) {
  Owned made(::socket(static_cast<int>(from.family), static_cast<int>(from.type | SOCK_CLOEXEC),
                      static_cast<int>(from.protocol)));
  if (made.number() < 0) return fail(os_error("making a socket", errno));
  DIAPAUSE_TRY(set_options(made.number(), from.options, OptionTime::before_binding));
  const int yes = 1;
  if (from.family != AF_UNIX)
    ::setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return made;
}

Status bind_to(int socket, const Socket& from, const ByteVector& address) {
  const Visit visit(from.directory);
  const std::string path = path_of_address(address);
  if (!path.empty()) {
    std::error_code ignored;
    const auto directory = std::filesystem::path(path).parent_path();
    if (!directory.empty()) std::filesystem::create_directories(directory, ignored);
    remove_stale(path, static_cast<int>(from.type));
  }
  int error = try_to_bind(socket, address);
  if (error == EADDRINUSE && from.family != AF_UNIX) error = bind_without_closed(socket, address);
  if (error != 0) return fail(socket_error(address, error));
  if (!path.empty() && from.mode != 0) ::chmod(path.c_str(), static_cast<mode_t>(from.mode));
  return {};
}

bool is_bound(const Socket& one) {
  return one.family == AF_UNIX ? !one.local.empty() : port_of(one.local) != 0;
}

Result<Owned> open_single(const Socket& from, const LogSink& log) {
  DIAPAUSE_TRY_ASSIGN(Owned made, make_socket(from));
  Status bound;
  if (is_bound(from)) bound = bind_to(made.number(), from, from.local);
  for (int waited_ms = 0; is_held_by_closed(bound, from.local) && waited_ms < kClosedLimit_ms;
       waited_ms += kPause_ms) {
    if (waited_ms == 0) {
      log(Severity::warning,
          "waiting for up to a minute, until the kernel has forgotten connections of the killed "
          "job "
          "to " +
              text_of_address(from.local));
    }
    ::usleep(kPause_ms * 1000);
    bound = bind_to(made.number(), from, from.local);
  }
  DIAPAUSE_TRY(bound);
  if (from.state == SocketState::listening &&
      ::listen(made.number(), static_cast<int>(from.backlog)) != 0) {
    return fail(socket_error(from.local, errno));
  }
  // What a UNIX socket leads to may not be there yet.
  const bool leads_somewhere =
      from.state == SocketState::idle && !from.remote.empty() && from.family != AF_UNIX;
  if (leads_somewhere &&
      ::connect(made.number(), address_in(from.remote), length_of(from.remote)) != 0) {
    return fail(socket_error(from.remote, errno));
  }
  return made;
}

void widen(int socket, Buffer which, std::size_t bytes) {
  const bool sends = which == Buffer::of_sender;
  const int name = sends ? SO_SNDBUF : SO_RCVBUF,
            forced_name = sends ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
  constexpr int kBufLock = 72;  // SO_BUF_LOCK
  int now = 0, locked = 0;
  socklen_t length = sizeof now;
  ::getsockopt(socket, SOL_SOCKET, name, &now, &length);
  length = sizeof locked;
  ::getsockopt(socket, SOL_SOCKET, kBufLock, &locked, &length);
  const auto wanted =
      static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(now) + bytes, 1u << 30));
  if (::setsockopt(socket, SOL_SOCKET, forced_name, &wanted, sizeof wanted) != 0) {
    ::setsockopt(socket, SOL_SOCKET, name, &wanted, sizeof wanted);
  }
  ::setsockopt(socket, SOL_SOCKET, kBufLock, &locked, sizeof locked);
}

}  // namespace diapause::process
