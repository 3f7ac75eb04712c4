#include "process/closed_connections.hpp"

#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

#include "process/ask_kernel_for_sockets.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

struct Connection {
  ByteVector local, remote;
};

ByteVector address_of(std::uint8_t family, const __be32 (&host)[4], __be16 port) {
  if (family == AF_INET) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = port;
    std::memcpy(&four.sin_addr, host, sizeof four.sin_addr);
    const ByteView bytes = as_byte_view(four);
    return {bytes.begin(), bytes.end()};
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = port;
  std::memcpy(&six.sin6_addr, host, sizeof six.sin6_addr);
  const ByteView bytes = as_byte_view(six);
  return {bytes.begin(), bytes.end()};
}

std::vector<Connection> closed_connections(std::uint16_t port) {
  std::vector<Connection> found;
  for (const int family : {AF_INET, AF_INET6}) {
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<std::uint8_t>(family);
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_states = 1u << TCP_TIME_WAIT;
    request.id.idiag_sport = htons(port);
    (void)ask_kernel_for_sockets(
        as_byte_view(request), "closed connections", [&](const nlmsghdr& answer) {
          const auto& one = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&answer));
          if (one.idiag_state != TCP_TIME_WAIT || one.id.idiag_sport != htons(port)) return;
          found.push_back({address_of(one.idiag_family, one.id.idiag_src, one.id.idiag_sport),
                           address_of(one.idiag_family, one.id.idiag_dst, one.id.idiag_dport)});
        });
  }
  return found;
}

ByteVector without_port(const ByteVector& address) {
  ByteVector other = address;
  // The port is at the same place in addresses of both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  for (std::size_t i = 0; i < sizeof(in_port_t); ++i)
    other.at(offsetof(sockaddr_in, sin_port) + i) = std::byte{0};
  return other;
}

// Lets a socket connect from an address that a closed connection has, too, because both ends closed
// it at once. bind() refuses that; connect() takes the connection over if it is free to choose the
// port (net.ipv4.tcp_tw_reuse), and it is given no other to choose (Linux 6.3).
bool may_take_over(int socket, const ByteVector& address) {
  constexpr int kLocalPortRange = 51;  // IP_LOCAL_PORT_RANGE, which older headers lack
  const int yes = 1;
  const std::uint32_t port = port_of(address);
  const std::uint32_t range = port << 16 | port;
  const ByteVector any_port = without_port(address);
  return ::setsockopt(socket, IPPROTO_IP, kLocalPortRange, &range, sizeof range) == 0 &&
         ::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes) == 0 &&
         ::bind(socket, address_in(any_port), length_of(any_port)) == 0;
}

}  // namespace

bool has_closed_connections(std::uint16_t port) { return !closed_connections(port).empty(); }

std::vector<Owned> end_closed_connections(std::uint16_t port) {
  std::vector<Owned> callers;
  for (const Connection& one : closed_connections(port)) {
    if (!is_own_address(one.remote)) continue;
    Owned caller(
        ::socket(address_in(one.remote)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    ::setsockopt(caller.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(caller.number(), address_in(one.remote), length_of(one.remote)) != 0 &&
        !may_take_over(caller.number(), one.remote))
      continue;
    (void)::connect(caller.number(), address_in(one.local), length_of(one.local));
    callers.push_back(std::move(caller));
  }
  return callers;
}

}  // namespace diapause::process
