#include "sys/local_socket.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace diapause::sys {
namespace {

constexpr std::size_t kMostLineBytes = 64 * 1024;

int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// Returns the address of the socket. Socket paths must be short and directories may have long
// paths, so the address goes through the open directory.
Result<sockaddr_un> address_of(const Directory& directory, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory.fd(), name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(Code::argument, "the name " + name + " is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* as_address(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::optional<ucred> peer_of(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

bool is_same_user(int fd) {
  const auto peer = peer_of(fd);
  return peer && peer->uid == ::geteuid();
}

}  // namespace

LocalConnection::LocalConnection(LocalConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}
LocalConnection::~LocalConnection() {
  if (fd_ >= 0) ::close(fd_);
}

std::int64_t LocalConnection::peer() const {
  const auto peer = peer_of(fd_);
  return peer ? peer->pid : 0;
}

Result<std::string> LocalConnection::receive(double most_s) {
  std::string line;
  for (;;) {
    pollfd asked{fd_, POLLIN, 0};
    const int found = ::poll(&asked, 1, static_cast<int>(std::ceil(most_s * 1000)));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return fail(Code::timeout, "no answer came");
    char character = 0;
    const ssize_t got = ::recv(fd_, &character, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(os_error("receiving an answer", errno));
    if (got == 0) return fail(Code::io, "the other side has gone without an answer");
    if (character == '\n') return line;
    line += character;
    if (line.size() > kMostLineBytes) return fail(Code::corrupt, "the answer is too long");
  }
}

Status LocalConnection::send(const std::string& line) {
  std::string text = line + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(os_error("sending a message", errno));
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<LocalSocket> LocalSocket::listen(const Directory& directory, const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(const sockaddr_un address, address_of(directory, name));
  DIAPAUSE_TRY(directory.remove_file(name));
  LocalSocket made(make_socket(), directory.path() + "/" + name);
  if (made.fd_ < 0) return fail(os_error("making a socket", errno));
  const bool is_bound = ::bind(made.fd_, as_address(address), sizeof address) == 0;
  if (!is_bound || ::chmod(address.sun_path, 0600) != 0 || ::listen(made.fd_, 16) != 0) {
    return fail(os_error("listening at " + made.path_, errno));
  }
  return made;
}

LocalSocket::LocalSocket(LocalSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

LocalSocket::~LocalSocket() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
}

std::optional<LocalConnection> LocalSocket::accept() const {
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  LocalConnection connection(fd);
  if (!is_same_user(fd)) return std::nullopt;
  return connection;
}

Result<LocalConnection> connect_local(const Directory& directory, const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(const sockaddr_un address, address_of(directory, name));
  LocalConnection made(make_socket());
  if (made.fd_ < 0) return fail(os_error("making a socket", errno));
  if (::connect(made.fd_, as_address(address), sizeof address) != 0) {
    const bool is_nobody = errno == ENOENT || errno == ECONNREFUSED;
    if (is_nobody) {
      return fail(
          Error{Code::not_found, "nobody listens at " + directory.path() + "/" + name, errno});
    }
    return fail(os_error("connecting to " + directory.path() + "/" + name, errno));
  }
  if (!is_same_user(made.fd_))
    return fail(Code::denied, directory.path() + "/" + name + " belongs to another user");
  return made;
}

}  // namespace diapause::sys
