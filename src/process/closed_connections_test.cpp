#include "process/closed_connections.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace diapause::process {
namespace {

sockaddr_in here(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Owned new_socket() { return Owned(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

int error_of_binding(std::uint16_t port) {
  const Owned socket = new_socket();
  const int yes = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = here(port);
  return ::bind(socket.number(), generic(address), sizeof address) == 0 ? 0 : errno;
}

struct Pair {
  Owned caller, called;
  std::uint16_t port;  // of the one that was called
};

Pair connected() {
  const Owned door = new_socket();
  sockaddr_in address = here(0);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(door.number(), generic(address), sizeof address), 0);
  EXPECT_EQ(::listen(door.number(), 1), 0);
  ::getsockname(door.number(), reinterpret_cast<sockaddr*>(&address), &length);
  Owned caller = new_socket();
  EXPECT_EQ(::connect(caller.number(), generic(address), sizeof address), 0);
  Owned called(::accept(door.number(), nullptr, nullptr));
  return {std::move(caller), std::move(called), ntohs(address.sin_port)};
}

void fill(int socket) {
  std::array<char, 65536> bytes{};
  while (::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
}

void read_to_the_end(int socket) {
  std::array<char, 65536> bytes{};
  while (::recv(socket, bytes.data(), bytes.size(), 0) > 0) continue;
}

TEST(ClosedConnections, OfWhichOneEndWasClosedFirstAreEnded) {
  const std::uint16_t port = [] {
    Pair pair = connected();
    ::shutdown(pair.called.number(), SHUT_RDWR);
    read_to_the_end(pair.caller.number());
    return pair.port;
  }();
  ASSERT_TRUE(has_closed_connections(port));
  ASSERT_EQ(error_of_binding(port), EADDRINUSE);
  const std::vector<Owned> callers = end_closed_connections(port);
  EXPECT_EQ(error_of_binding(port), 0);
}

bool can_be_taken_over() {
  constexpr int kLocalPortRange = 51;  // IP_LOCAL_PORT_RANGE
  const std::uint32_t any = 0;
  std::ifstream setting("/proc/sys/net/ipv4/tcp_tw_reuse");
  int reuse = 0;
  setting >> reuse;
  return reuse != 0 &&
         ::setsockopt(new_socket().number(), IPPROTO_IP, kLocalPortRange, &any, sizeof any) == 0;
}

// Each end waits to send its end behind bytes for which the other one has no room, so that neither
// knows of the other's when it closes.
TEST(ClosedConnections, WhoseEndsWereClosedAtOnceAreEnded) {
  const std::uint16_t port = [] {
    const Pair pair = connected();
    for (const int end : {pair.caller.number(), pair.called.number()}) {
      fill(end);
      ::shutdown(end, SHUT_WR);
    }
    read_to_the_end(pair.called.number());
    read_to_the_end(pair.caller.number());
    return pair.port;
  }();
  ASSERT_TRUE(has_closed_connections(port));
  ASSERT_EQ(error_of_binding(port), EADDRINUSE);
  ::sleep(2);  // the kernel lets none take over a connection that has just been closed
  const std::vector<Owned> callers = end_closed_connections(port);
  if (!can_be_taken_over()) GTEST_SKIP() << "needs Linux 6.3 and net.ipv4.tcp_tw_reuse";
  EXPECT_EQ(error_of_binding(port), 0);
}

}  // namespace
}  // namespace diapause::process
