#include "process/closed_connections.hpp"

#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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
    if (::bind(caller.number(), address_in(one.remote), length_of(one.remote)) != 0) continue;
    ::connect(caller.number(), address_in(one.local), length_of(one.local));
    callers.push_back(std::move(caller));
  }
  return callers;
}

}  // namespace diapause::process
