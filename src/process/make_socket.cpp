#include "process/make_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "process/sockets.hpp"

namespace diapause::process {
namespace {

// Removes a socket file that a killed job has left at the path. A socket to which a process listens stays.
void remove_stale(const std::string& path, int type) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  Owned probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  address.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&address) + sizeof(sa_family_t), path.c_str(), path.size() + 1);
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + path.size() + 1);
  const bool is_alive = ::connect(probe.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  if (!is_alive && errno == ECONNREFUSED) ::unlink(path.c_str());
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
  if (error == EADDRINUSE) {
    made.code = Code::busy;
    made.message += ": another program has it by now";
  }
  return made;
}

Result<Owned> make_socket(const Socket& from) {
  Owned made(::socket(static_cast<int>(from.family), static_cast<int>(from.type | SOCK_CLOEXEC),
                      static_cast<int>(from.protocol)));
  if (made.number() < 0) return fail(os_error("making a socket", errno));
  DIAPAUSE_TRY(set_options(made.number(), from.options, OptionTime::before_binding));
  const int yes = 1;
  if (from.family != AF_UNIX) ::setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
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
  if (::bind(socket, address_in(address), length_of(address)) != 0) return fail(socket_error(address, errno));
  if (!path.empty() && from.mode != 0) ::chmod(path.c_str(), static_cast<mode_t>(from.mode));
  return {};
}

bool is_bound(const Socket& one) { return one.family == AF_UNIX ? !one.local.empty() : port_of(one.local) != 0; }

Result<Owned> open_single(const Socket& from) {
  DIAPAUSE_TRY_ASSIGN(Owned made, make_socket(from));
  if (is_bound(from)) DIAPAUSE_TRY(bind_to(made.number(), from, from.local));
  if (from.state == SocketState::listening && ::listen(made.number(), static_cast<int>(from.backlog)) != 0) {
    return fail(socket_error(from.local, errno));
  }
  const bool leads_somewhere = from.state == SocketState::idle && !from.remote.empty();
  if (leads_somewhere && ::connect(made.number(), address_in(from.remote), length_of(from.remote)) != 0) {
    return fail(socket_error(from.remote, errno));
  }
  return made;
}

void widen(int socket, Buffer which, std::size_t bytes) {
  const bool sends = which == Buffer::of_sender;
  const int name = sends ? SO_SNDBUF : SO_RCVBUF, forced_name = sends ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
  constexpr int kBufLock = 72;  // SO_BUF_LOCK
  int now = 0, locked = 0;
  socklen_t length = sizeof now;
  ::getsockopt(socket, SOL_SOCKET, name, &now, &length);
  length = sizeof locked;
  ::getsockopt(socket, SOL_SOCKET, kBufLock, &locked, &length);
  const auto wanted = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(now) + bytes, 1u << 30));
  if (::setsockopt(socket, SOL_SOCKET, forced_name, &wanted, sizeof wanted) != 0) {
    ::setsockopt(socket, SOL_SOCKET, name, &wanted, sizeof wanted);
  }
  ::setsockopt(socket, SOL_SOCKET, kBufLock, &locked, sizeof locked);
}

}  // namespace diapause::process
