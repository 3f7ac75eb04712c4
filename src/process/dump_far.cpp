// Dumps the connections of a frozen job that lead to its other nodes, where everything stands
// still, too: finds their other ends, and takes down what is on its way.
#include <fmt/core.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "process/borrowed.hpp"
#include "process/dump_parts.hpp"
#include "process/other_nodes.hpp"
#include "process/sockets.hpp"

namespace diapause::process {
namespace {

constexpr int kAcknowledged_us = 5'000;  // time for the kernels to acknowledge what has arrived
constexpr int kLook_us = 200;
constexpr std::uint64_t kMostRounds = 20'000;

std::uint64_t unacknowledged(int socket) {
  int count = 0;
  return ::ioctl(socket, SIOCOUTQ, &count) == 0 && count > 0 ? static_cast<std::uint64_t>(count)
                                                             : 0;
}

ByteVector bytes_of(std::uint64_t value) {
  const ByteView bytes = as_byte_view(value);
  return {bytes.begin(), bytes.end()};
}

std::uint64_t value_of(const ByteVector& bytes) {
  std::uint64_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void append_all_that_is_here(int socket, ByteVector& to) {
  ByteVector room(1 << 20);
  for (;;) {
    const ssize_t got = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    to.insert(to.end(), room.begin(), room.begin() + got);
  }
}

// Data on its way on connections to other nodes is in one of two places: in the receiving kernel,
// which shows it, or still in the sending one, which does not. So where a sender has bytes left,
// the receiver takes all bytes out until the sender has none, and gives them back to the sender's
// node, which sends them once more.
class FarDrain {
 public:
  FarDrain(DumpWork& work, OtherNodes& others) : work_(work), others_(others) {}

  Status run() {
    for (const FarEnd& one : work_.result.job.far_ends) {
      const DumpWork::SeenSocket& seen = work_.sockets[one.socket];
      DIAPAUSE_TRY_ASSIGN(Borrowed socket, Borrowed::of(seen.here, seen.number));
      sockets_.push_back(std::move(socket));
      peers_.push_back({one.node, one.peer});
    }
    taken_.resize(sockets_.size());
    DIAPAUSE_TRY(others_.greatest(0));
    Status drained = take_all();
    if (drained) drained = give_back();
    if (drained || !has_taken_) return drained;
    work_.frozen.end();
    return fail(
        Code::internal,
        "what was under way between nodes cannot be put back: the job was ended; restart it (" +
            drained.error().message + ")");
  }

 private:
  // Returns how many bytes each end has sent that have not arrived, after a while for the
  // acknowledgements.
  std::vector<std::uint64_t> look_at_senders() {
    const int now = 1;
    for (const Borrowed& one : sockets_)
      ::setsockopt(one.number(), IPPROTO_TCP, TCP_QUICKACK, &now, sizeof now);
    std::vector<std::uint64_t> left;
    for (int waited_us = 0;; waited_us += kLook_us) {
      left.clear();
      std::uint64_t sum = 0;
      for (const Borrowed& one : sockets_) sum += left.emplace_back(unacknowledged(one.number()));
      if (sum == 0 || waited_us >= kAcknowledged_us) return left;
      ::usleep(kLook_us);
    }
  }

  Status take_all() {
    for (std::uint64_t round = 0; round < kMostRounds; ++round) {
      std::uint64_t sum = 0;
      std::vector<ByteVector> mine;
      for (const std::uint64_t one : look_at_senders()) {
        sum += one;
        mine.push_back(bytes_of(one));
      }
      DIAPAUSE_TRY_ASSIGN(const std::uint64_t most, others_.greatest(sum));
      if (most == 0) return take_rest();
      DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> theirs, others_.swap(peers_, mine));
      DIAPAUSE_TRY(refuse_shut(mine));
      for (std::size_t i = 0; i < sockets_.size(); ++i) {
        if (value_of(theirs[i]) > 0 || taken_[i]) take(i);
      }
    }
    return fail(Code::timeout, "bytes on their way to another node do not arrive");
  }

  // An end that is shut cannot send its bytes once more. They arrive while the job runs on.
  Status refuse_shut(const std::vector<ByteVector>& left) {
    Status none_is_shut;
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const std::uint32_t index = work_.result.job.far_ends[i].socket;
      if (value_of(left[i]) == 0 || !work_.result.job.sockets[index].is_write_shut) continue;
      const DumpWork::SeenSocket& seen = work_.sockets[index];
      none_is_shut =
          fail(Code::again,
               fmt::format("process {} ({}) has {}, which is shut, and from which bytes are on "
                           "their way to another node: try again",
                           seen.status.id, seen.status.name, seen.place));
    }
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t any, others_.greatest(none_is_shut ? 0 : 1));
    if (!none_is_shut || any == 0) return none_is_shut;
    return fail(Code::again,
                "bytes are on their way between nodes from an end that is shut: try again");
  }

  void take(std::size_t end) {
    if (!taken_[end]) taken_[end].emplace();
    append_all_that_is_here(sockets_[end].number(), *taken_[end]);
    has_taken_ = has_taken_ || !taken_[end]->empty();
  }

  Status take_rest() {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const std::uint32_t index = work_.result.job.far_ends[i].socket;
      ByteVector bytes;
      if (taken_[i]) {
        take(i);
        bytes = *taken_[i];
      } else {
        DIAPAUSE_TRY_ASSIGN(bytes, peek_stream(work_.sockets[index], sockets_[i].number()));
      }
      if (!bytes.empty()) work_.result.job.sockets[index].waiting.push_back(std::move(bytes));
    }
    return {};
  }

  Status give_back() {
    std::vector<ByteVector> mine;
    for (auto& one : taken_) mine.push_back(one ? std::move(*one) : ByteVector());
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> theirs, others_.swap(peers_, mine));
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      if (put_back(sockets_[i].number(), theirs[i])) continue;
      has_taken_ = true;
      return fail(Code::timeout, "a connection takes less than it held");
    }
    DIAPAUSE_TRY_ASSIGN(std::uint64_t done, others_.greatest(0));
    (void)done;
    return {};
  }

  DumpWork& work_;
  OtherNodes& others_;
  std::vector<Borrowed> sockets_;  // parallel to Job::far_ends
  std::vector<OtherNodes::Place> peers_;
  // This is what came out of ends that must be emptied.
  std::vector<std::optional<ByteVector>> taken_;
  bool has_taken_ = false;
};

}  // namespace

Status find_far_ends(DumpWork& work, OtherNodes& others) {
  std::vector<Socket>& sockets = work.result.job.sockets;
  std::vector<std::uint32_t> still_unmatched, of_internet;
  for (const std::uint32_t index : work.unmatched) {
    const bool is_tcp = sockets[index].family != AF_UNIX && sockets[index].type == SOCK_STREAM;
    (is_tcp ? of_internet : still_unmatched).push_back(index);
  }
  std::vector<OtherNodes::Addresses> ends;
  for (const std::uint32_t index : of_internet) {
    ends.push_back({plain_address(sockets[index].local), plain_address(sockets[index].remote)});
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<OtherNodes::Place> places, others.find(ends));
  // The numbers are those of the lists that the nodes gave; an end whose peer is nowhere is not
  // among the far ends.
  std::vector<ByteVector> numbers(places.size());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].node != kNone) numbers[i] = bytes_of(next++);
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> theirs, others.swap(places, numbers));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].node == kNone) {
      still_unmatched.push_back(of_internet[i]);
    } else {
      work.result.job.far_ends.push_back(
          {of_internet[i], places[i].node, static_cast<std::uint32_t>(value_of(theirs[i]))});
    }
  }
  work.unmatched = std::move(still_unmatched);
  return {};
}

Status take_down_far_sockets(DumpWork& work, OtherNodes& others) {
  return FarDrain(work, others).run();
}

}  // namespace diapause::process
