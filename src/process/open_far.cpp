// Makes the connections of a stored job to its other nodes again, pairwise with those.
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "process/make_socket.hpp"
#include "process/open_sockets.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

constexpr int kFarConnectLimit_ms = 30'000, kBusyLimit_ms = 2000, kFillLimit_ms = 30'000;
constexpr int kManyWaiting = 4096;  // connections that may wait to be accepted meanwhile

class FarOpener {
 public:
  FarOpener(const Job& job, const LogSink& log, OtherNodes& others, std::vector<int>& sockets)
      : job_(job), log_(log), others_(others), sockets_(sockets) {
    for (const FarEnd& one : job.far_ends) peers_.push_back({one.node, one.peer});
  }

  Status open() {
    DIAPAUSE_TRY(decide_who_accepts());
    DIAPAUSE_TRY(listen());
    DIAPAUSE_TRY(connect());
    DIAPAUSE_TRY(accept());
    DIAPAUSE_TRY(fill());
    for (const FarEnd& one : job_.far_ends) {
      const Socket& stored = job_.sockets[one.socket];
      const int socket = sockets_[one.socket];
      if (stored.is_write_shut) ::shutdown(socket, SHUT_WR);
      if (stored.is_read_shut) ::shutdown(socket, SHUT_RD);
      DIAPAUSE_TRY(set_options(socket, stored.options, OptionTime::at_the_end));
      DIAPAUSE_TRY(set_options(socket, stored.options, OptionTime::when_filled));
    }
    return {};
  }

 private:
  const Socket& stored(std::size_t end) const { return job_.sockets[job_.far_ends[end].socket]; }

  std::uint32_t find_listener(const Socket& one) const {
    std::uint32_t best = kNone;
    for (std::uint32_t i = 0; i < job_.sockets.size(); ++i) {
      const Socket& other = job_.sockets[i];
      if (other.state != SocketState::listening || other.family != one.family ||
          other.type != one.type)
        continue;
      if (plain_address(other.local) == plain_address(one.local)) return i;
      if (port_of(other.local) == port_of(one.local)) best = i;
    }
    return best;
  }

  // The end that has the port of a listening socket was accepted there, and is accepted again.
  Status decide_who_accepts() {
    std::vector<ByteVector> mine;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      listeners_.push_back(find_listener(stored(i)));
      mine.push_back(ByteVector(1, std::byte{listeners_.back() != kNone}));
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> theirs, others_.swap(peers_, mine));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const bool is_mine = mine[i][0] != std::byte{0};
      const bool is_theirs = !theirs[i].empty() && theirs[i][0] != std::byte{0};
      accepts_.push_back(is_mine != is_theirs ? is_mine : others_.own_number() < peers_[i].node);
    }
    return {};
  }

  // Opens doors for the connections that are accepted here, and tells the other ends where they
  // are.
  Status listen() {
    std::vector<ByteVector> mine(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      doors_.push_back(-1);
      if (!accepts_[i]) continue;
      DIAPAUSE_TRY_ASSIGN(doors_[i], door_for(i));
      mine[i] = plain_address(stored(i).local);
    }
    DIAPAUSE_TRY_ASSIGN(targets_, others_.swap(peers_, mine));
    return {};
  }

  Result<int> door_for(std::size_t end) {
    const std::uint32_t known = listeners_[end];
    if (known != kNone) {
      ::listen(sockets_[known], kManyWaiting);
      return sockets_[known];
    }
    const ByteVector address = plain_address(stored(end).local);
    for (const auto& [local, door] : temporary_) {
      if (local == address) return door.number();
    }
    Socket listener = stored(end);
    listener.state = SocketState::listening;
    listener.backlog = kManyWaiting;
    DIAPAUSE_TRY_ASSIGN(Owned door, open_single(listener, log_));
    temporary_.emplace_back(address, std::move(door));
    return temporary_.back().second.number();
  }

  Status connect() {
    std::vector<ByteVector> mine(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (accepts_[i]) continue;
      DIAPAUSE_TRY_ASSIGN(Owned made, connect_to(targets_[i], stored(i)));
      mine[i] = plain_address(address_by(made.number(), ::getsockname));
      sockets_[job_.far_ends[i].socket] = made.take();
    }
    DIAPAUSE_TRY_ASSIGN(comers_, others_.swap(peers_, mine));
    return {};
  }

  // Connects from the port that the socket had. If another program has that, it connects from
  // another one, with a warning.
  Result<Owned> connect_to(const ByteVector& target, const Socket& from) {
    for (int waited_ms = 0;; waited_ms += 100) {
      auto made = connect_from(target, from, from.local);
      const bool is_busy =
          !made && (made.error().os_errno == EADDRINUSE || made.error().os_errno == EADDRNOTAVAIL);
      if (!is_busy) return made;
      if (waited_ms >= kBusyLimit_ms || made.error().os_errno == EADDRINUSE) break;
      ::usleep(100'000);
    }
    log_(Severity::warning, "a connection of the job comes from another port now: " +
                                text_of_address(from.local) + " is in use");
    return connect_from(target, from, {});
  }

  static Result<Owned> connect_from(const ByteVector& target, const Socket& from,
                                    const ByteVector& local) {
    DIAPAUSE_TRY_ASSIGN(Owned made, make_socket(from));
    if (!local.empty()) DIAPAUSE_TRY(bind_to(made.number(), from, local));
    // An address of IPv4 may have to be given as one of IPv6.
    const ByteVector to = address_for_family(target, from.family);
    if (::connect(made.number(), address_in(to), length_of(to)) == 0) return made;
    return fail(socket_error(target, errno));
  }

  // Accepts until all that belong here have come. Connections that another program has made are
  // closed.
  Status accept() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (!accepts_[i]) continue;
      while (sockets_[job_.far_ends[i].socket] < 0) DIAPAUSE_TRY(accept_one(doors_[i]));
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (accepts_[i] && listeners_[i] != kNone) {
        ::listen(sockets_[listeners_[i]], static_cast<int>(job_.sockets[listeners_[i]].backlog));
      }
    }
    temporary_.clear();
    return {};
  }

  Status accept_one(int door) {
    pollfd asked{door, POLLIN, 0};
    if (::poll(&asked, 1, kFarConnectLimit_ms) <= 0) {
      return fail(Code::timeout, "a connection from another node of the job does not come");
    }
    Owned accepted(::accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.number() < 0) return fail(os_error("accepting a connection of the job", errno));
    const ByteVector from = plain_address(address_by(accepted.number(), ::getpeername));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      int& socket = sockets_[job_.far_ends[i].socket];
      if (!accepts_[i] || socket >= 0 || doors_[i] != door || comers_[i] != from) continue;
      socket = accepted.take();
      break;
    }
    return {};
  }

  // Each node has what waited at its own ends, and the other end must send it.
  Status fill() {
    std::vector<ByteVector> mine(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      for (const ByteVector& piece : stored(i).waiting)
        mine[i].insert(mine[i].end(), piece.begin(), piece.end());
      if (mine[i].size() > kMostAnyway)
        widen(sockets_[job_.far_ends[i].socket], Buffer::of_receiver, mine[i].size());
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> theirs, others_.swap(peers_, mine));
    for (std::size_t i = 0; i < peers_.size(); ++i)
      DIAPAUSE_TRY(send(sockets_[job_.far_ends[i].socket], theirs[i]));
    return {};
  }

  static Status send(int socket, ByteView bytes) {
    const std::size_t all = bytes.size();
    for (int waited_ms = 0; !bytes.empty() && waited_ms < kFillLimit_ms; ++waited_ms) {
      const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
        continue;
      }
      widen(socket, Buffer::of_sender, bytes.size());
      ::usleep(1000);
    }
    if (bytes.empty()) return {};
    return fail(
        Code::mismatch,
        fmt::format("{} bytes that were on their way between nodes do not fit into a connection "
                    "here (net.core.wmem_max, net.core.rmem_max)",
                    all));
  }

  static constexpr std::size_t kMostAnyway =
      std::size_t{32} * 1024;  // fits without a larger buffer

  const Job& job_;
  const LogSink& log_;
  OtherNodes& others_;
  std::vector<int>& sockets_;
  // These stand beside Job::far_ends.
  std::vector<OtherNodes::Place> peers_;
  // Each is the socket of the job that listens at this end's port, or kNone.
  std::vector<std::uint32_t> listeners_;
  std::vector<bool> accepts_;
  std::vector<int> doors_;
  std::vector<ByteVector> targets_, comers_;  // addresses to connect to, and addresses that connect
  std::vector<std::pair<ByteVector, Owned>> temporary_;
};

}  // namespace

Status open_far_sockets(const Job& job, const LogSink& log, OtherNodes& others,
                        std::vector<int>& sockets) {
  return FarOpener(job, log, others, sockets).open();
}

}  // namespace diapause::process
