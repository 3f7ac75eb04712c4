#include "sys/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "sys/process.hpp"

namespace diapause::sys {
namespace {

// Waits until the descriptor is ready, or the time `end_s` has come.
bool wait_for(int fd, short events, double end_s) {
  for (;;) {
    const double left_s = end_s - monotonic_s();
    if (left_s <= 0) return false;
    pollfd asked{fd, events, 0};
    const int found = ::poll(&asked, 1, static_cast<int>(std::ceil(std::min(left_s, 1e6) * 1000)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  const std::string_view mapped = "::ffff:";
  const std::string whole(text.data());
  return whole.starts_with(mapped) ? whole.substr(mapped.size()) : whole;
}

void set_number(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

// Lets others take the port of a socket when it does not listen. Must be called when the socket has
// its port: the kernel would give it one that another socket has.
void share_port(int fd) { set_number(fd, SOL_SOCKET, SO_REUSEADDR, 1); }

}  // namespace

Stream::Stream(int fd) : fd_(fd) {
  if (fd < 0) return;
  constexpr int kProbeAfter_s = 5, kProbes = 4, kUnacknowledged_ms = 30'000;
  set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfter_s);
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeAfter_s);
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledged_ms);
}

Stream::~Stream() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Stream> Stream::connect(const std::string& address, std::uint16_t port, double most_s) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(Code::argument, address + " is no address");
  }
  Stream made(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int begun = made.fd_ < 0 ? -1 : ::connect(made.fd_, found->ai_addr, found->ai_addrlen);
  int error = begun == 0 ? 0 : errno;
  ::freeaddrinfo(found);
  const std::string what = fmt::format("connecting to {} at port {}", address, port);
  if (error == EINPROGRESS) {
    if (!wait_for(made.fd_, POLLOUT, monotonic_s() + most_s))
      return fail(Code::timeout, what + ": no answer");
    socklen_t length = sizeof error;
    ::getsockopt(made.fd_, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0) return fail(os_error(what, error));
  share_port(made.fd_);
  return made;
}

std::string Stream::peer_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return text_of(reinterpret_cast<const sockaddr*>(&address), length);
}

Result<std::size_t> Stream::send_some(ByteView data) {
  const ssize_t sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return fail(Code::io, os_error("sending", errno).message, errno);
}

Result<std::size_t> Stream::receive_some(MutableBytes data) {
  const ssize_t got = ::recv(fd_, data.data(), data.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return fail(Code::io, "the connection was closed");
  if (errno == EAGAIN || errno == EINTR) return 0;
  return fail(Code::io, os_error("receiving", errno).message, errno);
}

Status Stream::send_all(ByteView data, double most_s) {
  const double end_s = monotonic_s() + most_s;
  while (!data.empty()) {
    DIAPAUSE_TRY_ASSIGN(const std::size_t sent, send_some(data));
    data = data.subspan(sent);
    if (sent == 0 && !wait_for(fd_, POLLOUT, end_s))
      return fail(Code::timeout, "nothing is taken any more");
  }
  return {};
}

Status Stream::receive_all(MutableBytes data, double most_s) {
  const double end_s = monotonic_s() + most_s;
  while (!data.empty()) {
    DIAPAUSE_TRY_ASSIGN(const std::size_t got, receive_some(data));
    data = data.subspan(got);
    if (got == 0 && !wait_for(fd_, POLLIN, end_s))
      return fail(Code::timeout, "nothing comes any more");
  }
  return {};
}

Result<Listener> Listener::open() {
  int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_storage address{};
  socklen_t length = sizeof(sockaddr_in6);
  address.ss_family = AF_INET6;
  if (fd >= 0) set_number(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    // The machine has no IPv6.
    if (fd >= 0) ::close(fd);
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.ss_family = AF_INET;
    length = sizeof(sockaddr_in);
    if (fd < 0) return fail(os_error("making a socket", errno));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      const int error = errno;
      ::close(fd);
      return fail(os_error("taking a port", error));
    }
  }
  Listener made(fd, 0);
  share_port(fd);  // of the connections that it will accept
  length = sizeof address;
  if (::listen(fd, SOMAXCONN) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail(os_error("listening at a port", errno));
  }
  made.port_ =
      ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return made;
}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Stream> Listener::accept(double most_s) {
  const double end_s = monotonic_s() + most_s;
  for (;;) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return Stream(fd);
    const bool is_of_one_connection = errno == ECONNABORTED || errno == EINTR;
    if (errno != EAGAIN && !is_of_one_connection)
      return fail(os_error("accepting a connection", errno));
    if (!wait_for(fd_, POLLIN, end_s)) return fail(Code::timeout, "nobody has connected");
  }
}

Result<WaitSet> WaitSet::open() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return fail(os_error("making an epoll set", errno));
  return WaitSet(fd);
}

WaitSet::~WaitSet() {
  if (fd_ >= 0) ::close(fd_);
}

Status WaitSet::add(int fd, std::uint32_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = tag;
  if (::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return fail(os_error("watching a connection", errno));
}

void WaitSet::change(int fd, std::uint32_t tag, Wants wants) {
  epoll_event event{};
  event.events = wants == Wants::reading ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.u32 = tag;
  ::epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event);
}

void WaitSet::remove(int fd) { ::epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr); }

std::vector<std::uint32_t> WaitSet::wait(int most_ms) {
  std::array<epoll_event, 64> events{};
  const int found = ::epoll_wait(fd_, events.data(), events.size(), most_ms);
  std::vector<std::uint32_t> tags;
  for (int i = 0; i < found; ++i) tags.push_back(events[static_cast<std::size_t>(i)].data.u32);
  return tags;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool is_up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (one->ifa_addr == nullptr || !is_up) continue;
    if (one->ifa_addr->sa_family == AF_INET)
      addresses.push_back(text_of(one->ifa_addr, sizeof(sockaddr_in)));
    const auto* six = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
    if (one->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
      addresses.push_back(text_of(one->ifa_addr, sizeof(sockaddr_in6)));
    }
  }
  ::freeifaddrs(all);
  std::ranges::stable_sort(
      addresses, {}, [](const std::string& one) { return one.find(':') != std::string::npos; });
  return addresses;
}

}  // namespace diapause::sys
