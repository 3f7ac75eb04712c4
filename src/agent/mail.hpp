// Carries messages between the agents of a job, each over one connection for a pair of agents. It
// is for one thread.
//
// Communication is divided into rounds. A round is a request of the first agent and all that the
// agents tell each other because of it. If a round fails on one agent, it fails on all of them, and
// what is left of it is thrown away when the next begins.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/network.hpp"

namespace diapause::agent {

struct Post {
  std::uint32_t peer = 0;
  ByteView data;
};

class Mail {
 public:
  // `names` are what the agents are called in messages, by number. A link can be made on demand by
  // `connect`.
  using Connect = std::function<Status(Mail&, std::span<const std::uint32_t> peers)>;
  static Result<Mail> open(std::uint32_t own, std::vector<std::string> names);

  std::uint32_t own() const { return own_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }
  const std::string& name(std::uint32_t agent) const { return names_[agent]; }

  Status add_link(std::uint32_t peer, sys::Stream stream);
  bool has_link(std::uint32_t peer) const { return links_.contains(peer); }
  // Sets those that hand on the news of a failure.
  void set_neighbours(std::vector<std::uint32_t> neighbours) {
    neighbours_ = std::move(neighbours);
  }
  // Sets how links that are missing are made.
  void connect_by(Connect connect) { connect_ = std::move(connect); }

  // Returns a descriptor that is readable if something may have come.
  int fd() const { return set_.fd(); }
  std::uint32_t round() const { return round_; }
  // Returns the round in which the given agent has already said something and that is later than
  // the present one.
  std::optional<std::uint32_t> later_round_of(std::uint32_t peer);
  // Forgets what is left of earlier rounds.
  void begin_round(std::uint32_t round);
  // Ends the present round on all agents with this error.
  void give_up(const Error& why);
  // From now on no message may be awaited for longer than this, and one of `parent`, if there is
  // one, not for longer than `parent_s`.
  struct Limits {
    double seconds = 60;
    std::optional<std::uint32_t> parent;
    double parent_s = 60;
  };
  void set_limits(const Limits& limits) { limits_ = limits; }
  // Ends all connections. The other agents notice, and those that need this one no more for what
  // they are doing finish it.
  void close();
  void while_waiting(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // Sends all posts, and returns one message of each of `from`, in their order. Messages of one
  // agent arrive in the order in which they were posted. Code::timeout names the agents that were
  // waited for.
  Result<std::vector<ByteVector>> transfer(std::span<const Post> posts,
                                           std::span<const std::uint32_t> from);
  // Returns the error of the first agent that has gone or cannot be reached; null if there is none.
  const Error* lost() const { return gone_.empty() ? nullptr : &gone_.front().why; }

 private:
  struct Head {
    std::uint32_t magic = 0, kind = 0;
    std::uint32_t round = 0, unused = 0;
    std::uint64_t bytes = 0;
  };
  enum Kind : std::uint32_t { kMessage = 1, kGivenUp = 2, kLeaving = 3 };
  struct Outgoing {
    Head head;
    ByteView data;
    ByteVector own;  // the data, if nobody else keeps them
    std::size_t sent = 0;
  };
  struct Link {
    explicit Link(sys::Stream connection) : stream(std::move(connection)) {}
    sys::Stream stream;
    std::deque<Outgoing> outgoing;
    Head head;
    std::size_t head_bytes = 0;
    ByteVector body;
    std::size_t body_bytes = 0;
    bool is_leaving = false;  // the peer has said so, and closes the connection
  };

  Mail(std::uint32_t own, std::vector<std::string> names, sys::WaitSet set)
      : own_(own), names_(std::move(names)), set_(std::move(set)) {}
  void enqueue(std::uint32_t peer, Kind kind, ByteView data, ByteVector own);
  bool pump(int most_ms);
  Status send_from(Link& link);
  Status receive_into(std::uint32_t peer, Link& link);
  void take(std::uint32_t peer, Link& link);
  void lose(std::uint32_t peer, const Error& why);
  void note_end_of_round(std::uint32_t round, const Error& why);
  Status trouble(std::span<const std::uint32_t> needed) const;
  bool is_flushed() const;
  std::string missing(std::span<const std::uint32_t> from) const;
  double limit_s(std::span<const std::uint32_t> from) const;

  std::uint32_t own_;
  std::vector<std::string> names_;
  sys::WaitSet set_;
  std::map<std::uint32_t, std::unique_ptr<Link>> links_;
  std::vector<std::uint32_t> neighbours_;
  Connect connect_;
  std::uint32_t round_ = 0;
  // The keys are round and sender.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<ByteVector>> boxes_;
  std::map<std::uint32_t, Error> given_up_;  // for each round
  struct Gone {
    std::uint32_t peer;
    Error why;
    bool was_leaving;  // it had said so
  };
  std::vector<Gone> gone_;  // in the order in which they went
  Limits limits_;
  std::function<void()> meanwhile_;
};

}  // namespace diapause::agent
