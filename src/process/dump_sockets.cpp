// Dumps the sockets of a frozen job: their settings, what they are connected to, and the data that
// waits in them.
#include <fmt/core.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "process/borrowed.hpp"
#include "process/dump_parts.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

// `state` is a TCP state as <netinet/tcp.h> numbers it.
bool is_synchronized(std::uint32_t state) {
  return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT || state == TCP_FIN_WAIT1 ||
         state == TCP_FIN_WAIT2 || state == TCP_LAST_ACK || state == TCP_CLOSING;
}
bool has_sent_its_end(std::uint32_t state) {
  return is_synchronized(state) && state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT;
}

// Returns whether the other end has sent its end. If not, but a reader is at the end all the same,
// the socket's own process has shut it for reading.
bool has_got_an_end(std::uint32_t state) {
  return state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

// Multipath TCP is TCP to programs. Those in Go listen by it, without having asked for it.
bool is_tcp(std::uint32_t protocol) { return protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP; }

int number_of_socket(int socket, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

short poll_now(int socket, short events) {
  pollfd asked{socket, events, 0};
  ::poll(&asked, 1, 0);
  return asked.revents;
}

int count_by(int socket, unsigned long request) {
  int count = 0;
  return ::ioctl(socket, request, &count) == 0 ? count : 0;
}

// Says for a while where MSG_PEEK begins in a socket; from an offset on, each look goes on behind
// the one before.
class PeekOffset {
 public:
  static constexpr int kNone = -1;  // each look begins at the first byte
  PeekOffset(int socket, int offset)
      : socket_(socket), before_(number_of_socket(socket, SO_PEEK_OFF)) {
    set(offset);
  }
  ~PeekOffset() { set(before_); }
  PeekOffset(const PeekOffset&) = delete;
  PeekOffset& operator=(const PeekOffset&) = delete;

 private:
  void set(int offset) const {
    ::setsockopt(socket_, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
  }
  int socket_, before_;
};

// Returns whether urgent data (MSG_OOB) is among what waits in a socket. What comes after it cannot
// be looked at.
bool has_urgent_data(int socket) {
  const int before = number_of_socket(socket, SO_OOBINLINE);
  const auto count = [&](int is_inline) {
    ::setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &is_inline, sizeof is_inline);
    return count_by(socket, FIONREAD);
  };
  // The kernel counts up to urgent data, or, if it is inline, all. More may arrive meanwhile.
  bool is_cut = true;
  for (int look = 0; look < 3 && is_cut; ++look) is_cut = count(0) != count(1);
  ::setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &before, sizeof before);
  char byte = 0;
  return is_cut || ::recv(socket, &byte, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT) > 0;
}

class Describer {
 public:
  Describer(DumpWork& work, const DumpWork::SeenSocket& seen, int socket, Socket& to)
      : work_(work), seen_(seen), socket_(socket), to_(to) {}

  Status describe() {
    to_.family = static_cast<std::uint32_t>(number_of_socket(socket_, SO_DOMAIN));
    to_.type = static_cast<std::uint32_t>(number_of_socket(socket_, SO_TYPE));
    to_.protocol = static_cast<std::uint32_t>(number_of_socket(socket_, SO_PROTOCOL));
    to_.local = address_by(socket_, ::getsockname);
    to_.remote = address_by(socket_, ::getpeername);
    to_.options = options_of(socket_);
    const bool is_internet = to_.family == AF_INET || to_.family == AF_INET6;
    if (to_.family == AF_UNIX) return describe_unix();
    if (is_internet && to_.type == SOCK_STREAM && is_tcp(to_.protocol)) return describe_tcp();
    if (is_internet && to_.type == SOCK_DGRAM && to_.protocol == IPPROTO_UDP) {
      if (count_by(socket_, SIOCOUTQ) > 0)
        refuse_for_now(", in which a datagram waits for the rest of it (MSG_MORE, UDP_CORK)");
      return {};
    }
    const std::string what =
        fmt::format(", a socket of family {}, type {} and protocol {}, which is not restored yet",
                    to_.family, to_.type, to_.protocol);
    // Libraries ask the kernel for addresses, routes and adapters in a moment.
    to_.family == AF_NETLINK ? refuse_for_now(what) : refuse(what);
    return {};
  }

 private:
  void refuse(const std::string& why) { work_.refuse(seen_.status, "has " + seen_.place + why); }
  void refuse_for_now(const std::string& why) {
    work_.refuse_for_now(seen_.status, "has " + seen_.place + why);
  }

  Status describe_tcp() {
    // Without SO_REUSEADDR the kernel would keep the addresses of a killed job in use for a minute,
    // and a restart could not have them.
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket_, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
      return fail(os_error("asking for the state of " + seen_.place, errno));
    }
    const bool sees_end = (poll_now(socket_, POLLRDHUP) & POLLRDHUP) != 0;
    if (info.tcpi_state == TCP_LISTEN) {
      to_.state = SocketState::listening;
      to_.backlog = info.tcpi_sacked;
      work_.sockets.back().queued = info.tcpi_unacked;
    } else if (is_synchronized(info.tcpi_state)) {
      to_.state = SocketState::connected;
      to_.is_write_shut = has_sent_its_end(info.tcpi_state);
      to_.is_read_shut = !has_got_an_end(info.tcpi_state) && sees_end;
      refuse_what_is_hidden();
    } else if (info.tcpi_state == TCP_CLOSE) {
      to_.state = sees_end ? SocketState::ended : SocketState::idle;
      if ((poll_now(socket_, 0) & POLLERR) != 0) {
        refuse_for_now(
            ", whose connection was reset or refused, which the program does not know "
            "yet");
      }
    } else {
      refuse_for_now(", which is about to be connected: try again");
    }
    return {};
  }

  void refuse_what_is_hidden() {
    if (has_urgent_data(socket_))
      refuse_for_now(", in which urgent data (MSG_OOB) waits, which is not restored yet");
    std::array<char, 16> layer{};
    socklen_t length = layer.size() - 1;
    const bool has_layer =
        to_.protocol == IPPROTO_TCP &&
        ::getsockopt(socket_, IPPROTO_TCP, TCP_ULP, layer.data(), &length) == 0 && length > 0;
    if (has_layer) refuse(fmt::format(", whose data the kernel itself changes ({})", layer.data()));
  }

  Status describe_unix() {
    if (work_.unix_sockets.empty()) {
      DIAPAUSE_TRY_ASSIGN(work_.unix_sockets, list_unix_sockets());
    }
    const UnixSocket& known = work_.unix_sockets[static_cast<std::uint32_t>(seen_.inode)];
    if (known.is_listening) {
      to_.state = SocketState::listening;
      to_.backlog = known.backlog;
      work_.sockets.back().queued = known.waiting;
      describe_path(known);
    } else if (is_connected_unix(known)) {
      describe_connected_unix(known);
    } else if (!to_.local.empty()) {
      describe_path(known);
    }
    to_.directory = work_.result.job.processes.back().directory;
    return {};
  }

  // To the kernel a datagram socket is connected, too, if another one is connected to it.
  bool is_connected_unix(const UnixSocket& known) const {
    if (to_.type != SOCK_DGRAM) return !to_.remote.empty() || known.peer != 0 || known.is_connected;
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    return ::getpeername(socket_, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
  }

  void describe_connected_unix(const UnixSocket& known) {
    to_.state = SocketState::connected;
    const short state = poll_now(socket_, POLLRDHUP);
    to_.is_read_shut = (state & POLLRDHUP) != 0;
    if (to_.type == SOCK_STREAM) refuse_what_is_hidden();
    const bool is_named = !to_.local.empty() || !to_.remote.empty();
    if (to_.type != SOCK_DGRAM || !is_named) return;
    if (to_.remote.empty() || to_.is_read_shut) {
      refuse(
          ", a datagram socket with a name that is one of a pair, or that is shut, which is not "
          "restored yet");
    }
    describe_path(known);
  }

  // Records the mode of a bound socket's file. Refuses the socket if the file is gone or is another
  // one, because a restart makes it again in its place.
  void describe_path(const UnixSocket& known) {
    std::string path = path_of_address(to_.local);
    if (path.empty()) return;
    if (!path.starts_with('/')) path = work_.result.job.processes.back().directory + "/" + path;
    struct stat found {};
    const bool is_there = ::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) &&
                          static_cast<std::uint32_t>(found.st_ino) == known.file_inode;
    if (!is_there) refuse(fmt::format(", bound to {}, which is another file by now or none", path));
    to_.mode = found.st_mode & 07777;
  }

  DumpWork& work_;
  const DumpWork::SeenSocket& seen_;
  int socket_;
  Socket& to_;
};

// Returns the index of the other end of a connected socket, or kNone if the job does not have it.
// UNIX sockets are matched by their inodes, internet sockets by their addresses.
std::uint32_t find_peer(const DumpWork& work, std::uint32_t index) {
  const std::vector<Socket>& sockets = work.result.job.sockets;
  const Socket& one = sockets[index];
  if (one.family == AF_UNIX) {
    const auto known =
        work.unix_sockets.find(static_cast<std::uint32_t>(work.sockets[index].inode));
    const std::uint32_t peer = known == work.unix_sockets.end() ? 0 : known->second.peer;
    const auto other = std::ranges::find(work.sockets, peer, &DumpWork::SeenSocket::inode);
    return peer == 0 || other == work.sockets.end()
               ? kNone
               : static_cast<std::uint32_t>(other - work.sockets.begin());
  }
  const ByteVector local = plain_address(one.local), remote = plain_address(one.remote);
  for (std::uint32_t i = 0; i < sockets.size(); ++i) {
    const Socket& other = sockets[i];
    const bool is_candidate =
        i != index && other.family != AF_UNIX && other.state == SocketState::connected;
    if (is_candidate && plain_address(other.local) == remote &&
        plain_address(other.remote) == local)
      return i;
  }
  return kNone;
}

bool is_datagram_by_name(const Socket& one) {
  return one.family == AF_UNIX && one.type == SOCK_DGRAM && !one.remote.empty();
}

// Lets a datagram socket that is connected by name stand by itself: a restart connects it by that
// name when the other socket has it.
void let_stand_alone(DumpWork& work, std::uint32_t index) {
  std::vector<Socket>& sockets = work.result.job.sockets;
  Socket& one = sockets[index];
  const std::uint32_t peer = find_peer(work, index);
  one.state = SocketState::idle;
  if (peer != kNone && sockets[peer].local == one.remote) return;
  const DumpWork::SeenSocket& seen = work.sockets[index];
  work.refuse(seen.status, fmt::format("has {}, whose other end ({}) is outside of the job, or is "
                                       "closed",
                                       seen.place, text_of_address(one.remote)));
}

// Returns the index of the listening socket that the connection may wait to be accepted from, or
// kNone.
std::uint32_t find_listener(const DumpWork& work, const Socket& one) {
  const std::vector<Socket>& sockets = work.result.job.sockets;
  if (one.family != AF_UNIX && !is_own_address(one.remote)) return kNone;
  const auto found = std::ranges::find_if(sockets, [&](const Socket& other) {
    if (other.state != SocketState::listening || other.type != one.type) return false;
    const bool is_local = one.family == AF_UNIX || other.family == AF_UNIX;
    return is_local ? other.local == one.remote : port_of(other.local) == port_of(one.remote);
  });
  return found == sockets.end() ? kNone : static_cast<std::uint32_t>(found - sockets.begin());
}

// Returns whether a connection that nobody has accepted yet holds no bytes. Those that it holds
// could be seen only by accepting it.
bool is_still_empty(const Socket& one, int socket) {
  if (count_by(socket, FIONREAD) > 0) return false;
  if (one.family == AF_UNIX) return count_by(socket, SIOCOUTQ) == 0;
  // The structure of the C library ends before the field tcpi_data_segs_out.
  constexpr std::size_t kSegments = 156;
  std::array<std::byte, kSegments + sizeof(std::uint32_t)> info{};
  socklen_t length = info.size();
  std::uint32_t segments = 1;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, info.data(), &length) != 0 ||
      length < info.size())
    return false;
  std::memcpy(&segments, info.data() + kSegments, sizeof segments);
  return segments == 0 && count_by(socket, SIOCOUTQ) == 0;
}

// Returns whether the other end, which no process of the job has, is closed. Nothing can come from
// a closed end any more.
bool is_peer_closed(const DumpWork& work, std::uint32_t index, int socket) {
  const Socket& one = work.result.job.sockets[index];
  if (one.family == AF_UNIX) {
    const auto known =
        work.unix_sockets.find(static_cast<std::uint32_t>(work.sockets[index].inode));
    const bool has_other = known != work.unix_sockets.end() && known->second.peer != 0;
    return !has_other && (poll_now(socket, 0) & POLLHUP) != 0;
  }
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  return info.tcpi_state == TCP_CLOSE_WAIT;
}

// Decides about a connected socket whose other end no process of the job has. `others` are the
// other nodes of the job, or null.
Status look_at_lonely(DumpWork& work, std::uint32_t index, const OtherNodes* others) {
  Socket& one = work.result.job.sockets[index];
  const DumpWork::SeenSocket& seen = work.sockets[index];
  DIAPAUSE_TRY_ASSIGN(const Borrowed socket, Borrowed::of(seen.here, seen.number));
  if (is_peer_closed(work, index, socket.number())) return {};
  const bool is_own_end = one.family != AF_UNIX && !one.remote.empty() &&
                          plain_address(one.local) == plain_address(one.remote);
  const std::string what =
      is_own_end
          ? fmt::format("has {}, which is connected to itself ({}): that is not restored yet",
                        seen.place, text_of_address(one.remote))
          : fmt::format("has {}, whose other end ({}) is outside of the job", seen.place,
                        text_of_address(one.remote));
  const std::uint32_t listener = find_listener(work, one);
  if (listener == kNone) {
    const bool may_be_of_job = others != nullptr && others->is_of_job(one.remote);
    may_be_of_job ? work.refuse_for_now(seen.status, what) : work.refuse(seen.status, what);
  } else if (work.sockets[listener].queued == 0) {
    work.refuse_for_now(seen.status, what);
  } else if (is_still_empty(one, socket.number())) {
    one.state = SocketState::waiting;
    --work.sockets[listener].queued;
  } else {
    work.refuse_for_now(
        seen.status, fmt::format("has {}, a connection that was not accepted yet and holds bytes "
                                 "already",
                                 seen.place));
  }
  return {};
}

// Refuses listening sockets with connections that no process of the job has made.
void look_at_queues(DumpWork& work) {
  for (const DumpWork::SeenSocket& one : work.sockets) {
    if (one.queued == 0) continue;
    work.refuse_for_now(
        one.status,
        fmt::format("has {}, in which connections of programs outside of the job, or that "
                    "are closed already, wait to be accepted",
                    one.place));
  }
}

// Returns the number of bytes that the other end has sent and that have not arrived. Bytes that
// have arrived and only lack the kernel's acknowledgement do not count, so acknowledgements are
// asked for and awaited for up to 5 ms.
int bytes_on_their_way(int reader, int writer) {
  const int now = 1;
  ::setsockopt(reader, IPPROTO_TCP, TCP_QUICKACK, &now, sizeof now);
  for (int look = 0; look < 50 && count_by(writer, SIOCOUTQ) > 0; ++look) ::usleep(100);
  return count_by(writer, SIOCOUTQ);
}

}  // namespace

Result<ByteVector> peek_stream(const DumpWork::SeenSocket& seen, int socket) {
  ByteVector bytes(static_cast<std::size_t>(count_by(socket, FIONREAD)));
  if (bytes.empty()) return bytes;
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const PeekOffset offset(socket, PeekOffset::kNone);
  const ssize_t got = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return fail(os_error("looking at what waits in " + seen.place, errno));
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return fail(Code::again,
                fmt::format("process {} ({}) has {}, in which descriptors or credentials are on "
                            "their way, which is not restored yet",
                            seen.status.id, seen.status.name, seen.place));
  }
  if (static_cast<std::size_t>(got) != bytes.size()) {
    return fail(Code::io, "less than was told of can be read from " + seen.place);
  }
  return bytes;
}

namespace {

tl::unexpected<Error> cannot_be_looked_at(const DumpWork::SeenSocket& seen) {
  return fail(
      Code::again,
      fmt::format(
          "process {} ({}) has {}, in which an empty message, or descriptors or credentials, "
          "wait to be read, which is not restored yet",
          seen.status.id, seen.status.name, seen.place));
}

// Returns whether an empty message that was seen may still be there. It is not if the socket has no
// message at all.
bool may_have_empty_message(std::uint64_t inode, int socket, EmptyMessages& seen) {
  if (!seen.contains(inode)) return false;
  const PeekOffset offset(socket, PeekOffset::kNone);
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool is_end = got == 0 && (poll_now(socket, POLLRDHUP) & POLLRDHUP) != 0;
  if (got >= 0 && !is_end) return true;
  seen.erase(inode);
  return false;
}

// Reads the messages in a socket one by one, with their boundaries, and leaves them there.
Status peek_messages(const DumpWork::SeenSocket& seen, int socket, EmptyMessages& empty,
                     Socket& to) {
  if (may_have_empty_message(seen.inode, socket, empty)) return cannot_be_looked_at(seen);
  const PeekOffset offset(socket, 0);
  ByteVector room(1 << 20);
  for (;;) {
    iovec part{room.data(), room.size()};
    msghdr message{};
    sockaddr_storage sender{};
    message.msg_name = &sender;
    message.msg_namelen = sizeof sender;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    const bool is_end = got == 0 && (poll_now(socket, POLLRDHUP) & POLLRDHUP) != 0;
    if (got < 0 || is_end) return {};
    if (got == 0) empty.insert(seen.inode);
    if (got == 0 || (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0)
      return cannot_be_looked_at(seen);
    to.waiting.emplace_back(room.begin(), room.begin() + got);
    const ByteView name =
        as_byte_view(sender).first(std::min<std::size_t>(message.msg_namelen, sizeof sender));
    to.senders.emplace_back(name.begin(), name.end());
  }
}

constexpr int kFlowLimit_ms = 30'000;

// Takes out all bytes that the other end has sent, also those that have not arrived yet.
Result<ByteVector> take_out(int reader, int writer) {
  ByteVector taken;
  ByteVector room(1 << 20);
  for (int waited = 0; waited < 10 * kFlowLimit_ms;) {
    const ssize_t got = ::recv(reader, room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) {
      taken.insert(taken.end(), room.begin(), room.begin() + got);
    } else if (got == 0 || bytes_on_their_way(reader, writer) == 0) {
      if (count_by(reader, FIONREAD) == 0) return taken;
    } else {
      ++waited;
      ::usleep(100);
    }
  }
  return taken;
}

}  // namespace

bool put_back(int writer, ByteView bytes) {
  for (int waited = 0; !bytes.empty() && waited < 10 * kFlowLimit_ms;) {
    const ssize_t sent = ::send(writer, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else {
      ++waited;
      ::usleep(100);
    }
  }
  return bytes.empty();
}

namespace {

// Bytes that are still with their sender cannot be read in place. Therefore all bytes are taken out
// of the connection and sent again by the end that they came from. If that fails, the job is
// killed, and the call fails with Code::internal.
Result<ByteVector> take_and_put_back(DumpWork& work, const DumpWork::SeenSocket& seen, int reader,
                                     int writer) {
  DIAPAUSE_TRY_ASSIGN(ByteVector bytes, take_out(reader, writer));
  if (put_back(writer, bytes)) return bytes;
  work.frozen.end();
  return fail(Code::internal,
              fmt::format("what was under way in {} of process {} cannot be put back: the job was "
                          "ended; restart it",
                          seen.place, seen.status.id));
}

Status take_down_stream(DumpWork& work, std::uint32_t index, int socket) {
  const DumpWork::SeenSocket& seen = work.sockets[index];
  Socket& one = work.result.job.sockets[index];
  std::optional<ByteVector> bytes;
  if (one.family != AF_UNIX && one.peer != kNone) {
    const DumpWork::SeenSocket& other = work.sockets[one.peer];
    DIAPAUSE_TRY_ASSIGN(const Borrowed peer, Borrowed::of(other.here, other.number));
    if (bytes_on_their_way(socket, peer.number()) > 0) {
      DIAPAUSE_TRY_ASSIGN(bytes, take_and_put_back(work, seen, socket, peer.number()));
    }
  }
  if (!bytes) {
    DIAPAUSE_TRY_ASSIGN(bytes, peek_stream(seen, socket));
  }
  if (!bytes->empty()) one.waiting.push_back(std::move(*bytes));
  return {};
}

// A datagram can be sent again only by a socket of this machine that has the address of its sender.
Status check_senders(const DumpWork::SeenSocket& seen, const Socket& one) {
  for (const ByteVector& sender : one.senders) {
    if (is_own_address(sender)) continue;
    return fail(
        Code::again,
        fmt::format("process {} ({}) has {}, in which a datagram from another machine waits to be "
                    "read ({})",
                    seen.status.id, seen.status.name, seen.place, text_of_address(sender)));
  }
  return {};
}

Status take_down(DumpWork& work, std::uint32_t index) {
  const DumpWork::SeenSocket& seen = work.sockets[index];
  Socket& one = work.result.job.sockets[index];
  const bool has_datagrams = one.type == SOCK_DGRAM;
  if (one.state != SocketState::connected && !has_datagrams) return {};
  if (is_far(work.result.job, index)) return {};
  DIAPAUSE_TRY_ASSIGN(const Borrowed socket, Borrowed::of(seen.here, seen.number));
  if (one.type == SOCK_STREAM) return take_down_stream(work, index, socket.number());
  DIAPAUSE_TRY(peek_messages(seen, socket.number(), work.empty_messages, one));
  return one.family == AF_UNIX ? Status{} : check_senders(seen, one);
}

}  // namespace

Status describe_socket(DumpWork& work, const DumpWork::SeenSocket& seen, Description& to) {
  to.kind = DescriptionKind::socket;
  to.which = static_cast<std::uint32_t>(work.sockets.size());
  DIAPAUSE_TRY_ASSIGN(const Borrowed socket, Borrowed::of(seen.here, seen.number));
  work.sockets.push_back(seen);
  return Describer(work, seen, socket.number(), work.result.job.sockets.emplace_back()).describe();
}

Status connect_sockets(DumpWork& work) {
  std::vector<Socket>& sockets = work.result.job.sockets;
  for (std::uint32_t i = 0; i < sockets.size(); ++i) {
    Socket& one = sockets[i];
    if (one.state != SocketState::connected) continue;
    if (is_datagram_by_name(one)) {
      let_stand_alone(work, i);
      continue;
    }
    const DumpWork::SeenSocket& seen = work.sockets[i];
    DIAPAUSE_TRY_ASSIGN(const Borrowed socket, Borrowed::of(seen.here, seen.number));
    one.peer = find_peer(work, i);
    if (one.peer == kNone) {
      work.unmatched.push_back(i);
      continue;
    }
    const DumpWork::SeenSocket& other = work.sockets[one.peer];
    DIAPAUSE_TRY_ASSIGN(const Borrowed peer, Borrowed::of(other.here, other.number));
    if (one.family == AF_UNIX) {
      one.is_write_shut = (poll_now(peer.number(), POLLRDHUP) & POLLRDHUP) != 0;
    } else if (sockets[one.peer].is_write_shut &&
               bytes_on_their_way(socket.number(), peer.number()) > 0) {
      work.refuse_for_now(seen.status,
                          fmt::format("has {}, to which bytes are on their way from an end that is "
                                      "shut: try again",
                                      seen.place));
    }
  }
  return {};
}

Status refuse_outsiders(DumpWork& work, const OtherNodes* others) {
  for (const std::uint32_t index : work.unmatched)
    DIAPAUSE_TRY(look_at_lonely(work, index, others));
  look_at_queues(work);
  return {};
}

Status take_down_sockets(DumpWork& work) {
  for (std::uint32_t i = 0; i < work.sockets.size(); ++i) DIAPAUSE_TRY(take_down(work, i));
  return {};
}

}  // namespace diapause::process
