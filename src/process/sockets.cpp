#include "process/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "process/ask_kernel_for_sockets.hpp"

namespace diapause::process {
namespace {

#ifndef SO_BUF_LOCK
constexpr int SO_BUF_LOCK = 72;  // since Linux 5.14
#endif
constexpr int kSendLocked = 1,
              kReceiveLocked = 2;  // bits of SO_BUF_LOCK: the program has set the size

struct KnownOption {
  int level, name;
  OptionTime time;
};
constexpr OptionTime kEarly = OptionTime::before_binding, kLate = OptionTime::at_the_end,
                     kLast = OptionTime::when_filled;
constexpr KnownOption kRestoredOptions[] = {
    {SOL_SOCKET, SO_REUSEPORT, kEarly},
    {SOL_SOCKET, SO_KEEPALIVE, kLate},
    {SOL_SOCKET, SO_LINGER, kLate},
    {SOL_SOCKET, SO_OOBINLINE, kLate},
    {SOL_SOCKET, SO_PASSCRED, kLate},
    {SOL_SOCKET, SO_RCVLOWAT, kLate},
    {SOL_SOCKET, SO_RCVTIMEO, kLate},
    {SOL_SOCKET, SO_SNDTIMEO, kLate},
    {SOL_SOCKET, SO_BROADCAST, kLate},
    {SOL_SOCKET, SO_DONTROUTE, kLate},
    {SOL_SOCKET, SO_TIMESTAMP, kLate},
    {SOL_SOCKET, SO_TIMESTAMPNS, kLate},
    {SOL_SOCKET, SO_TIMESTAMPING, kLate},
    {SOL_SOCKET, SO_RXQ_OVFL, kLate},
    {SOL_SOCKET, SO_ZEROCOPY, kLate},
    {SOL_SOCKET, SO_NO_CHECK, kLate},
    {SOL_SOCKET, SO_PEEK_OFF, kLast},
    {SOL_SOCKET, SO_ATTACH_FILTER, kLast},
    {SOL_SOCKET, SO_SNDBUF, kLate},
    {SOL_SOCKET, SO_RCVBUF, kLate},
    {IPPROTO_TCP, TCP_NODELAY, kLate},
    {IPPROTO_TCP, TCP_CORK, kLate},
    {IPPROTO_TCP, TCP_KEEPIDLE, kLate},
    {IPPROTO_TCP, TCP_KEEPINTVL, kLate},
    {IPPROTO_TCP, TCP_KEEPCNT, kLate},
    {IPPROTO_TCP, TCP_SYNCNT, kLate},
    {IPPROTO_TCP, TCP_LINGER2, kLate},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, kLate},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, kLate},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, kLate},
    {IPPROTO_TCP, TCP_FASTOPEN, kLate},
    {IPPROTO_TCP, TCP_CONGESTION, kEarly},
    {IPPROTO_UDP, UDP_SEGMENT, kLast},
    {IPPROTO_UDP, UDP_GRO, kLate},
    {IPPROTO_IP, IP_FREEBIND, kEarly},
    {IPPROTO_IP, IP_TOS, kLate},
    {IPPROTO_IP, IP_TTL, kLate},
    {IPPROTO_IP, IP_PKTINFO, kLate},
    {IPPROTO_IP, IP_RECVTTL, kLate},
    {IPPROTO_IP, IP_RECVTOS, kLate},
    {IPPROTO_IP, IP_RECVERR, kLate},
    {IPPROTO_IP, IP_MTU_DISCOVER, kLate},
    {IPPROTO_IP, IP_MULTICAST_TTL, kLate},
    {IPPROTO_IP, IP_MULTICAST_LOOP, kLate},
    {IPPROTO_IP, MCAST_JOIN_GROUP, kLate},
    {IPPROTO_IPV6, IPV6_V6ONLY, kEarly},
    {IPPROTO_IPV6, IPV6_TCLASS, kLate},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, kLate},
    {IPPROTO_IPV6, IPV6_RECVPKTINFO, kLate},
    {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, kLate},
    {IPPROTO_IPV6, IPV6_RECVTCLASS, kLate},
    {IPPROTO_IPV6, IPV6_RECVERR, kLate},
    {IPPROTO_IPV6, IPV6_MTU_DISCOVER, kLate},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kLate},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, kLate},
    {IPPROTO_IPV6, MCAST_JOIN_GROUP, kLate},
    {SOL_SOCKET, SO_PRIORITY, kLate},  // after those by which the kernel chooses a priority
};

bool is_of_family(int level, int family) {
  if (level == SOL_SOCKET) return true;
  if (level == IPPROTO_IP) return family == AF_INET;
  if (level == IPPROTO_IPV6) return family == AF_INET6;
  return family != AF_UNIX;
}

int number_option(int socket, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, level, name, &value, &length) == 0 ? value : 0;
}

bool is_filter(int level, int name) { return level == SOL_SOCKET && name == SO_ATTACH_FILTER; }

// Returns the instructions of a socket's filter, and nothing if it has none.
ByteVector filter_of(int socket) {
  std::vector<sock_filter> instructions(BPF_MAXINSNS);
  socklen_t count = BPF_MAXINSNS;  // the kernel counts instructions here, and not bytes
  if (::getsockopt(socket, SOL_SOCKET, SO_GET_FILTER, instructions.data(), &count) != 0) return {};
  instructions.resize(std::min<std::size_t>(count, instructions.size()));
  const ByteView bytes = std::as_bytes(std::span(instructions));
  return {bytes.begin(), bytes.end()};
}

int set_filter(int socket, const ByteVector& value) {
  std::vector<sock_filter> instructions(value.size() / sizeof(sock_filter));
  std::memcpy(instructions.data(), value.data(), instructions.size() * sizeof(sock_filter));
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

ByteVector option_of(int socket, int level, int name) {
  if (is_filter(level, name)) return filter_of(socket);
  std::array<std::byte, 64> value{};
  socklen_t length = value.size();
  if (::getsockopt(socket, level, name, value.data(), &length) != 0) return {};
  return {value.begin(), value.begin() + length};
}

// Returns whether only sockets for datagrams take an option, though others may tell it.
bool is_of_datagrams(int level, int name) {
  return (level == IPPROTO_IP && name == IP_MULTICAST_TTL) ||
         (level == IPPROTO_IPV6 && name == IPV6_MULTICAST_HOPS);
}

bool is_size(int level, int name) {
  return level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF);
}

// Returns half of a buffer size. The kernel sets twice the size that it is given, to have room for
// its own data.
ByteVector half_of(const ByteVector& value) {
  int number = 0;
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  number /= 2;
  const ByteView bytes = as_byte_view(number);
  return {bytes.begin(), bytes.end()};
}

// Adds an option to join a group if the socket is a member of it. The kernel tells this only to
// those who ask for a group, and so all are tried that any socket of the machine has joined.
void add_if_joined(int socket, int level, const group_req& group,
                   std::vector<SocketOption>& options) {
  group_filter asked{};
  asked.gf_interface = group.gr_interface;
  asked.gf_group = group.gr_group;
  socklen_t length = GROUP_FILTER_SIZE(0);
  if (::getsockopt(socket, level, MCAST_MSFILTER, &asked, &length) != 0) return;
  const ByteView bytes = as_byte_view(group);
  options.push_back({static_cast<std::uint32_t>(level), MCAST_JOIN_GROUP,
                     ByteVector(bytes.begin(), bytes.end())});
}

void add_groups(int socket, int family, std::vector<SocketOption>& options) {
  group_req group{};
  if (family == AF_INET) {
    // A line "2 eth0 : ..." names an interface, and the indented ones after it its groups.
    std::ifstream lines("/proc/self/net/igmp");
    for (std::string line; std::getline(lines, line);) {
      const char* const end = line.data() + line.size();
      if (!line.starts_with('\t')) {
        std::from_chars(line.data(), end, group.gr_interface);
        continue;
      }
      const std::size_t begin = std::min(line.find_first_not_of('\t'), line.size());
      std::uint32_t number = 0;
      if (std::from_chars(line.data() + begin, end, number, 16).ec == std::errc()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = number;
        std::memcpy(&group.gr_group, &address, sizeof address);
        add_if_joined(socket, IPPROTO_IP, group, options);
      }
    }
  } else if (family == AF_INET6) {
    std::ifstream lines("/proc/self/net/igmp6");
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string device, digits;
      words >> group.gr_interface >> device >> digits;
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      for (std::size_t i = 0; i < 16 && digits.size() == 32; ++i) {
        std::from_chars(&digits[2 * i], &digits[2 * i] + 2, address.sin6_addr.s6_addr[i], 16);
      }
      std::memcpy(&group.gr_group, &address, sizeof address);
      if (digits.size() == 32) add_if_joined(socket, IPPROTO_IPV6, group, options);
    }
  }
}

template <class T>
T address_as(const ByteVector& address) {
  T value{};
  std::memcpy(&value, address.data(), std::min(address.size(), sizeof value));
  return value;
}

sa_family_t family_of(const ByteVector& address) {
  return address.size() < sizeof(sa_family_t) ? sa_family_t{AF_UNSPEC}
                                              : address_as<sockaddr>(address).sa_family;
}

// Returns what follows the family in an address of a UNIX socket: a path, or a name that begins
// with NUL.
std::string name_of_unix(const ByteVector& address) {
  constexpr std::size_t kStart = offsetof(sockaddr_un, sun_path);
  if (family_of(address) != AF_UNIX || address.size() <= kStart) return "";
  return {reinterpret_cast<const char*>(address.data()) + kStart, address.size() - kStart};
}

UnixSocket parse_unix(const nlmsghdr& header) {
  const auto* message = static_cast<const unix_diag_msg*>(NLMSG_DATA(&header));
  constexpr std::uint8_t kEstablished = 1, kListening = 10;  // the numbers of the states of TCP
  UnixSocket found;
  found.is_listening = message->udiag_state == kListening;
  found.is_connected = message->udiag_state == kEstablished;
  auto left = static_cast<int>(header.nlmsg_len - NLMSG_LENGTH(sizeof *message));
  const auto* attribute = reinterpret_cast<const rtattr*>(message + 1);
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    const void* data = RTA_DATA(attribute);
    if (attribute->rta_type == UNIX_DIAG_PEER) {
      std::memcpy(&found.peer, data, sizeof found.peer);
    } else if (attribute->rta_type == UNIX_DIAG_RQLEN) {
      unix_diag_rqlen lengths{};
      std::memcpy(&lengths, data, sizeof lengths);
      found.waiting = lengths.udiag_rqueue;
      found.backlog = lengths.udiag_wqueue;
    } else if (attribute->rta_type == UNIX_DIAG_VFS) {
      unix_diag_vfs file{};
      std::memcpy(&file, data, sizeof file);
      found.file_inode = file.udiag_vfs_ino;
    }
  }
  return found;
}

}  // namespace

std::string text_of_address(const ByteVector& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family_of(address) == AF_INET) {
    const auto four = address_as<sockaddr_in>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return fmt::format("the port {}:{}", text.data(), ntohs(four.sin_port));
  }
  if (family_of(address) == AF_INET6) {
    const auto six = address_as<sockaddr_in6>(address);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    return fmt::format("the port [{}]:{}", text.data(), ntohs(six.sin6_port));
  }
  std::string name = name_of_unix(address);
  if (name.starts_with('\0')) name[0] = '@';
  return name.empty() ? "a socket without a name" : "the socket " + name;
}

std::string host_of_address(const ByteVector& address) {
  const ByteVector plain = plain_address(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family_of(plain) == AF_INET) {
    const auto four = address_as<sockaddr_in>(plain);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (family_of(plain) == AF_INET6) {
    const auto six = address_as<sockaddr_in6>(plain);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::uint16_t port_of(const ByteVector& address) {
  if (family_of(address) == AF_INET) return ntohs(address_as<sockaddr_in>(address).sin_port);
  if (family_of(address) == AF_INET6) return ntohs(address_as<sockaddr_in6>(address).sin6_port);
  return 0;
}

ByteVector with_port(const ByteVector& address, std::uint16_t port) {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  ByteVector changed = address;
  const std::uint16_t bytes = htons(port);
  if (changed.size() >= sizeof(sockaddr_in))
    std::memcpy(changed.data() + offsetof(sockaddr_in, sin_port), &bytes, sizeof bytes);
  return changed;
}

ByteVector plain_address(const ByteVector& address) {
  if (family_of(address) != AF_INET6) return address;
  const auto six = address_as<sockaddr_in6>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return address;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
  const ByteView bytes = as_byte_view(four);
  return {bytes.begin(), bytes.end()};
}

ByteVector address_for_family(const ByteVector& plain, std::uint32_t family) {
  if (family != AF_INET6 || family_of(plain) != AF_INET) return plain;
  const auto four = address_as<sockaddr_in>(plain);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  six.sin6_addr.s6_addr[10] = six.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(six.sin6_addr.s6_addr + 12, &four.sin_addr, sizeof four.sin_addr);
  const ByteView bytes = as_byte_view(six);
  return {bytes.begin(), bytes.end()};
}

ByteVector address_by(int socket, AskAddress& ask) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (ask(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  // For a UNIX socket without a name the kernel returns the family and nothing else.
  if (storage.ss_family == AF_UNIX && length <= sizeof(sa_family_t)) return {};
  const ByteView bytes = as_byte_view(storage).first(std::min<std::size_t>(length, sizeof storage));
  return {bytes.begin(), bytes.end()};
}

bool is_far(const Job& job, std::uint32_t index) {
  return std::ranges::find(job.far_ends, index, &FarEnd::socket) != job.far_ends.end();
}

bool is_own_address(const ByteVector& address) {
  const int socket = ::socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  sockaddr_storage any_port{};
  std::memcpy(&any_port, address.data(), std::min(address.size(), sizeof any_port));
  // The port is at the same place in both families.
  reinterpret_cast<sockaddr_in*>(&any_port)->sin_port = 0;
  const bool can_be_bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&any_port),
                                   static_cast<socklen_t>(address.size())) == 0;
  ::close(socket);
  return can_be_bound;
}

std::string path_of_address(const ByteVector& address) {
  const std::string name = name_of_unix(address);
  return name.starts_with('\0') ? "" : name.substr(0, name.find('\0'));
}

std::vector<SocketOption> options_of(int socket) {
  std::vector<SocketOption> options;
  const int family = number_option(socket, SOL_SOCKET, SO_DOMAIN);
  const bool has_datagrams = number_option(socket, SOL_SOCKET, SO_TYPE) == SOCK_DGRAM;
  const int locked = number_option(socket, SOL_SOCKET, SO_BUF_LOCK);
  for (const KnownOption& one : kRestoredOptions) {
    if (!is_of_family(one.level, family)) continue;
    if (!has_datagrams && is_of_datagrams(one.level, one.name)) continue;
    const bool is_locked = (locked & (one.name == SO_SNDBUF ? kSendLocked : kReceiveLocked)) != 0;
    if (is_size(one.level, one.name) && !is_locked) continue;
    ByteVector value = option_of(socket, one.level, one.name);
    if (value.empty()) continue;
    options.push_back({static_cast<std::uint32_t>(one.level), static_cast<std::uint32_t>(one.name),
                       std::move(value)});
  }
  if (has_datagrams) add_groups(socket, family, options);
  return options;
}

Status set_options(int socket, const std::vector<SocketOption>& options, OptionTime time) {
  for (const SocketOption& one : options) {
    const auto level = static_cast<int>(one.level), name = static_cast<int>(one.name);
    const auto* known = std::ranges::find_if(kRestoredOptions, [&](const KnownOption& option) {
      return option.level == level && option.name == name;
    });
    if (known == std::end(kRestoredOptions))
      return fail(Code::corrupt, "a socket in the image has an option that none has");
    if (known->time != time || option_of(socket, level, name) == one.value) continue;
    const ByteVector& value = is_size(level, name) ? half_of(one.value) : one.value;
    const int done = is_filter(level, name) ? set_filter(socket, value)
                                            : ::setsockopt(socket, level, name, value.data(),
                                                           static_cast<socklen_t>(value.size()));
    if (done == 0) continue;
    return fail(
        os_error(fmt::format("setting option {} of level {} of a socket", name, level), errno));
  }
  return {};
}

Result<std::map<std::uint32_t, UnixSocket>> list_unix_sockets() {
  unix_diag_req request{};
  request.sdiag_family = AF_UNIX;
  request.udiag_states = ~0u;
  request.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN | UDIAG_SHOW_VFS;
  std::map<std::uint32_t, UnixSocket> sockets;
  DIAPAUSE_TRY(ask_kernel_for_sockets(
      as_byte_view(request), "UNIX sockets (sock_diag, module unix_diag)",
      [&](const nlmsghdr& answer) {
        sockets[static_cast<const unix_diag_msg*>(NLMSG_DATA(&answer))->udiag_ino] =
            parse_unix(answer);
      }));
  return sockets;
}

}  // namespace diapause::process
