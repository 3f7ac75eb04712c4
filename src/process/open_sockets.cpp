#include "process/open_sockets.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "process/make_socket.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

constexpr int kConnectLimit_ms = 10'000;

struct Ends {
  Owned accepting, connecting;
};

class Opener {
 public:
  Opener(Job& job, const LogSink& log, Relocation& relocation, std::vector<int>& sockets)
      : job_(job), log_(log), relocation_(relocation), sockets_(sockets) {}

  Status open() {
    sockets_.assign(job_.sockets.size(), -1);
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      if (one.state == SocketState::listening || one.state == SocketState::idle) {
        DIAPAUSE_TRY_ASSIGN(Owned made, open_alone(i));
        sockets_[i] = made.take();
      }
    }
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      const bool is_first_end =
          one.state == SocketState::connected && (one.peer == kNone || one.peer > i);
      if (is_first_end && !is_far(job_, i)) DIAPAUSE_TRY(open_pair(i));
      if (one.state == SocketState::ended) DIAPAUSE_TRY(open_ended(i));
    }
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      if (job_.sockets[i].state == SocketState::waiting) DIAPAUSE_TRY(open_waiting(i));
    }
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      if (one.state == SocketState::idle && one.family == AF_UNIX) DIAPAUSE_TRY(send_datagrams(i));
    }
    // From now on they take datagrams only of those to which they are connected.
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      const bool is_connected = one.family == AF_UNIX && !one.remote.empty();
      if (one.state == SocketState::idle && is_connected) DIAPAUSE_TRY(connect_by_name(i));
    }
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      if (!is_far(job_, i))
        DIAPAUSE_TRY(set_options(sockets_[i], job_.sockets[i].options, OptionTime::at_the_end));
    }
    // The kernel throws away datagrams for which a socket has no room, so it has all of its room by
    // now.
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      if (one.state == SocketState::idle && one.family != AF_UNIX) DIAPAUSE_TRY(send_udp(i));
    }
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      if (!is_far(job_, i))
        DIAPAUSE_TRY(set_options(sockets_[i], job_.sockets[i].options, OptionTime::when_filled));
    }
    return {};
  }

 private:
  // Opens a socket that is not connected. Where addresses are translated for the job, it may listen
  // at another port if its own is taken: several of its nodes may be on this machine.
  Result<Owned> open_alone(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    auto made = open_single(one, log_);
    const bool is_taken = !made && made.error().code == Code::busy;
    if (!is_taken || !relocation_.is_needed() || one.family == AF_UNIX || has_twin(index))
      return made;
    Socket moved = one;
    moved.local = with_port(one.local, 0);
    DIAPAUSE_TRY_ASSIGN(Owned other, open_single(moved, log_));
    move_port(index, port_of(address_by(other.number(), ::getsockname)));
    return other;
  }

  // Returns whether another socket listens at the same port, by another address of this node.
  bool has_twin(std::uint32_t index) const {
    const Socket& one = job_.sockets[index];
    if (one.state != SocketState::listening) return true;
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      if (i != index && has_port(job_.sockets[i], port_of(one.local), one.family) &&
          job_.sockets[i].state == SocketState::listening)
        return true;
    }
    return false;
  }

  static bool has_port(const Socket& one, std::uint16_t port, std::uint32_t family) {
    return one.family == family && one.type == SOCK_STREAM && port_of(one.local) == port;
  }

  // A socket of IPv6 is reached by IPv4, too, unless its program has said otherwise.
  static bool takes_both(const Socket& one) {
    const auto only = std::ranges::find_if(one.options, [](const SocketOption& option) {
      return option.level == IPPROTO_IPV6 && option.name == IPV6_V6ONLY;
    });
    return one.family == AF_INET6 &&
           (only == one.options.end() ||
            std::ranges::all_of(only->value, [](std::byte bits) { return bits == std::byte{0}; }));
  }

  // Connections that were accepted at a port have it, too, and their other ends know it.
  void move_port(std::uint32_t index, std::uint16_t to) {
    const std::uint32_t family = job_.sockets[index].family;
    const std::uint16_t from = port_of(job_.sockets[index].local);
    const bool is_both = takes_both(job_.sockets[index]);
    relocation_.move_port({relocation_.own(), family, from, to});
    if (is_both) relocation_.move_port({relocation_.own(), AF_INET, from, to});
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      Socket& one = job_.sockets[i];
      if (has_port(one, from, family)) {
        one.local = with_port(one.local, to);
        if (one.peer != kNone)
          job_.sockets[one.peer].remote = with_port(job_.sockets[one.peer].remote, to);
      }
      const bool waits_there = one.state == SocketState::waiting && port_of(one.remote) == from &&
                               (one.family == family || is_both);
      if (waits_there) one.remote = with_port(one.remote, to);
    }
  }

  // Returns the index of the job's socket that accepts connections to the local address of
  // `accepting`, or kNone if there is none any more.
  std::uint32_t find_listener(const Socket& accepting) const {
    std::uint32_t best = kNone;
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& one = job_.sockets[i];
      if (one.state != SocketState::listening || one.type != accepting.type ||
          one.family != accepting.family)
        continue;
      if (one.local == accepting.local) return i;
      if (one.family != AF_UNIX && port_of(one.local) == port_of(accepting.local)) best = i;
    }
    return best;
  }

  // Returns a stand-in for the other end of a connected socket, which the job does not have.
  static Socket mirror(const Socket& one) {
    Socket other = one;
    std::swap(other.local, other.remote);
    other.options.clear();
    other.waiting.clear();
    return other;
  }

  Status open_pair(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    const Socket other = one.peer == kNone ? mirror(one) : job_.sockets[one.peer];
    Ends ends;
    const bool is_named = one.family != AF_UNIX || !one.local.empty() || !other.local.empty();
    // The end that has the address of a listening socket was accepted there. If neither has, the
    // end that is bound accepts. An end that is closed may have been on another machine, so the one
    // that is left accepts.
    const bool is_left = one.peer == kNone && one.family != AF_UNIX;
    const bool accepts =
        is_left || find_listener(one) != kNone || (find_listener(other) == kNone && is_bound(one));
    if (!is_named) {
      DIAPAUSE_TRY_ASSIGN(ends, make_pair(one));
    } else if (accepts) {
      DIAPAUSE_TRY_ASSIGN(ends, connect(one, other));
    } else {
      DIAPAUSE_TRY_ASSIGN(ends, connect(other, one));
    }
    const bool is_accepting = !is_named || accepts;
    Owned mine = std::move(is_accepting ? ends.accepting : ends.connecting);
    Owned its = std::move(is_accepting ? ends.connecting : ends.accepting);
    DIAPAUSE_TRY(fill(its.number(), mine.number(), one));
    DIAPAUSE_TRY(fill(mine.number(), its.number(), other));
    shut(mine.number(), one);
    sockets_[index] = mine.take();
    if (one.peer == kNone) return {};
    shut(its.number(), other);
    sockets_[one.peer] = its.take();
    return {};
  }

  // Sends the waiting datagrams again, each from the socket that has the address of its sender, or
  // from one without an address.
  Status send_datagrams(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    const Owned nobody(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Visit visit(one.directory);
    for (std::size_t i = 0; i < one.waiting.size(); ++i) {
      int from = nobody.number();
      for (std::uint32_t k = 0; k < job_.sockets.size() && i < one.senders.size(); ++k) {
        const Socket& other = job_.sockets[k];
        const bool is_sender = other.type == SOCK_DGRAM && other.state == SocketState::idle &&
                               !other.local.empty() && other.local == one.senders[i];
        if (is_sender) from = sockets_[k];
      }
      const ByteVector& bytes = one.waiting[i];
      const ssize_t sent = ::sendto(from, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                                    address_in(one.local), length_of(one.local));
      if (sent != static_cast<ssize_t>(bytes.size())) return fail(socket_error(one.local, errno));
    }
    return {};
  }

  // Connects a datagram socket to the one that has its remote address.
  Status connect_by_name(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    const auto other = std::ranges::find_if(job_.sockets, [&](const Socket& each) {
      return each.type == SOCK_DGRAM && each.family == AF_UNIX && each.local == one.remote;
    });
    if (other == job_.sockets.end())
      return fail(Code::corrupt, "a datagram socket that is connected to none of the job");
    const Visit visit(other->directory);
    if (::connect(sockets_[index], address_in(one.remote), length_of(one.remote)) == 0) return {};
    return fail(socket_error(one.remote, errno));
  }

  // Makes a connection that nobody accepts now. Must be called when all others to that listening
  // socket are accepted.
  Status open_waiting(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    const Socket accepting = mirror(one);
    if (find_listener(accepting) == kNone)
      return fail(Code::corrupt, "a connection to a socket that does not listen");
    DIAPAUSE_TRY_ASSIGN(Owned made, connect_to(accepting, one));
    shut(made.number(), one);
    sockets_[index] = made.take();
    return {};
  }

  // Sends the waiting datagrams of a socket of UDP again, each from a socket that has the address
  // of its sender.
  Status send_udp(std::uint32_t index) {
    const Socket& one = job_.sockets[index];
    for (std::size_t i = 0; i < one.waiting.size() && i < one.senders.size(); ++i) {
      const ByteVector& sender = one.senders[i];
      Owned stand_in;
      int from = -1;
      for (std::uint32_t k = 0; k < job_.sockets.size(); ++k) {
        const Socket& other = job_.sockets[k];
        const bool may_send =
            other.type == SOCK_DGRAM && other.family == one.family && other.remote.empty();
        if (may_send && port_of(other.local) == port_of(sender)) from = sockets_[k];
      }
      if (from < 0) {
        DIAPAUSE_TRY_ASSIGN(stand_in, make_socket(one));
        from = stand_in.number();
        const bool has_address = ::bind(from, address_in(sender), length_of(sender)) == 0;
        if (!has_address)
          log_(Severity::warning,
               "a datagram comes from another port now: " + text_of_address(sender));
      }
      const ByteVector to = reachable(one.local, sender);
      const ByteVector& bytes = one.waiting[i];
      const ssize_t sent =
          ::sendto(from, bytes.data(), bytes.size(), MSG_NOSIGNAL, address_in(to), length_of(to));
      if (sent != static_cast<ssize_t>(bytes.size())) return fail(socket_error(to, errno));
    }
    return {};
  }

  // Returns the address of a socket, or that of its sender with its port if it is bound to all
  // addresses.
  static ByteVector reachable(const ByteVector& local, const ByteVector& sender) {
    ByteVector plain = local;
    const std::size_t address = local.size() == sizeof(sockaddr_in6) ? 8 : 4,
                      bytes = local.size() == sizeof(sockaddr_in6) ? 16 : 4;
    const bool is_any = std::all_of(local.begin() + static_cast<std::ptrdiff_t>(address),
                                    local.begin() + static_cast<std::ptrdiff_t>(address + bytes),
                                    [](std::byte value) { return value == std::byte{0}; });
    if (is_any && sender.size() == local.size())
      std::copy_n(sender.begin() + static_cast<std::ptrdiff_t>(address), bytes,
                  plain.begin() + static_cast<std::ptrdiff_t>(address));
    return plain;
  }

  static Result<Ends> make_pair(const Socket& one) {
    int ends[2];
    if (::socketpair(AF_UNIX, static_cast<int>(one.type | SOCK_CLOEXEC), 0, ends) != 0) {
      return fail(os_error("making a pair of sockets", errno));
    }
    return Ends{Owned(ends[0]), Owned(ends[1])};
  }

  Result<Ends> connect(const Socket& accepting, const Socket& connecting) {
    const std::uint32_t known = find_listener(accepting);
    Owned temporary;
    if (known == kNone) {
      Socket listener = accepting;
      listener.state = SocketState::listening;
      listener.backlog = 1;
      listener.mode = 0;
      DIAPAUSE_TRY_ASSIGN(temporary, open_single(listener, log_));
    }
    const int listener = known == kNone ? temporary.number() : sockets_[known];
    Ends ends;
    DIAPAUSE_TRY_ASSIGN(ends.connecting, connect_to(accepting, connecting));
    DIAPAUSE_TRY_ASSIGN(ends.accepting, accept_from(listener, ends.connecting.number()));
    const std::string path = path_of_address(accepting.local);
    const Visit visit(accepting.directory);
    if (known == kNone && !path.empty()) ::unlink(path.c_str());
    return ends;
  }

  // Connects from the address that the socket had, if possible. If that is in use, an internet
  // socket gets another port, with a warning.
  Result<Owned> connect_to(const Socket& accepting, const Socket& connecting) {
    auto made = connect_from(connecting.local, accepting, connecting);
    // The kernel keeps the ends of a connection of the killed job for at least a second.
    for (int waited_ms = 0;
         is_in_use(made) && made.error().os_errno == EADDRNOTAVAIL && waited_ms < 2000;) {
      ::usleep(100'000);
      waited_ms += 100;
      made = connect_from(connecting.local, accepting, connecting);
    }
    if (connecting.family == AF_UNIX || !is_in_use(made)) return made;
    log_(Severity::warning, "a connection of the job comes from another port now: " +
                                text_of_address(connecting.local) + " is in use");
    return connect_from({}, accepting, connecting);
  }

  static bool is_in_use(const Result<Owned>& made) {
    return !made && (made.error().os_errno == EADDRINUSE || made.error().os_errno == EADDRNOTAVAIL);
  }

  static Result<Owned> connect_from(const ByteVector& from, const Socket& accepting,
                                    const Socket& connecting) {
    DIAPAUSE_TRY_ASSIGN(Owned made, make_socket(connecting));
    if (!from.empty()) DIAPAUSE_TRY(bind_to(made.number(), connecting, from));
    const Visit visit(accepting.directory);
    const ByteVector& to = connecting.remote.empty() ? accepting.local : connecting.remote;
    if (::connect(made.number(), address_in(to), length_of(to)) == 0) return made;
    return fail(socket_error(to, errno));
  }

  // Accepts the connection of `connecting`. An internet connection that another program has made
  // first is closed.
  static Result<Owned> accept_from(int listener, int connecting) {
    sockaddr_storage own{};
    socklen_t own_length = sizeof own;
    ::getsockname(connecting, reinterpret_cast<sockaddr*>(&own), &own_length);
    const ByteVector expected = plain(own, own_length);
    for (;;) {
      pollfd asked{listener, POLLIN, 0};
      if (::poll(&asked, 1, kConnectLimit_ms) <= 0)
        return fail(Code::timeout, "no connection to a socket of the job");
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      Owned accepted(
          ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
      if (accepted.number() < 0) return fail(os_error("accepting a connection of the job", errno));
      if (own.ss_family == AF_UNIX || plain(from, length) == expected) return accepted;
    }
  }

  static ByteVector plain(const sockaddr_storage& address, socklen_t length) {
    const ByteView bytes = as_byte_view(address).first(length);
    return plain_address({bytes.begin(), bytes.end()});
  }

  // Sends once more what waited in a socket. The buffers are enlarged if it does not fit into them.
  static Status fill(int from, int to, const Socket& receiver) {
    for (const ByteVector& piece : receiver.waiting) {
      ByteView left = piece;
      for (int waited_ms = 0; !left.empty() && waited_ms < kConnectLimit_ms;) {
        const ssize_t sent = ::send(from, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
          left = left.subspan(static_cast<std::size_t>(sent));
          continue;
        }
        widen(from, Buffer::of_sender, left.size());
        widen(to, Buffer::of_receiver, left.size());
        ::usleep(1000);
        ++waited_ms;
      }
      if (!left.empty()) {
        return fail(Code::mismatch,
                    fmt::format("{} bytes that waited in a socket of the job do not fit into one "
                                "here (net.core.wmem_max, net.core.rmem_max)",
                                piece.size()));
      }
    }
    return {};
  }

  static void shut(int socket, const Socket& from) {
    if (from.is_write_shut) ::shutdown(socket, SHUT_WR);
    if (from.is_read_shut) ::shutdown(socket, SHUT_RD);
  }

  // Makes a socket whose connection is over. To a reader it is at its end, and not a socket that
  // was never connected.
  Status open_ended(std::uint32_t index) {
    Socket listener = job_.sockets[index];
    listener.state = SocketState::listening;
    listener.backlog = 1;
    listener.local.clear();
    listener.remote.clear();
    DIAPAUSE_TRY_ASSIGN(const Owned door, open_single(listener, log_));
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getsockname(door.number(), reinterpret_cast<sockaddr*>(&address), &length);
    DIAPAUSE_TRY_ASSIGN(Owned made, make_socket(job_.sockets[index]));
    if (::connect(made.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      return fail(os_error("making a connection that is over", errno));
    }
    DIAPAUSE_TRY_ASSIGN(const Owned other, accept_from(door.number(), made.number()));
    ::shutdown(other.number(), SHUT_RDWR);
    ::shutdown(made.number(), SHUT_RDWR);
    sockets_[index] = made.take();
    return {};
  }

  Job& job_;
  const LogSink& log_;
  Relocation& relocation_;
  std::vector<int>& sockets_;
};

}  // namespace

Status open_sockets(Job& job, const LogSink& log, Relocation& relocation,
                    std::vector<int>& sockets) {
  return Opener(job, log, relocation, sockets).open();
}

}  // namespace diapause::process
