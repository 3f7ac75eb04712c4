// Has the agents of a job that spans several nodes, as one of them sees the others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/job_store.hpp"
#include "agent/meeting.hpp"
#include "agent/peers.hpp"
#include "agent/remote.hpp"
#include "process/relocation.hpp"

namespace diapause::agent {

// An order is what the first agent wants of the others.
struct Order {
  enum Verb : std::uint32_t { checkpoint = 1, check = 2, end = 3, last = 4, finish = 5, go_on = 6 };
  std::uint32_t verb = end;
  std::int32_t level = 1;
};

class Team {
 public:
  // The call is collective. `secret` is that of the job's own processes. `directory` is where these
  // find what they need to reach other nodes. It is the same path on all nodes.
  static Result<std::unique_ptr<Team>> form(Company company, const Secret& secret,
                                            const std::string& directory);

  bool is_first() const { return company_.is_first(); }
  const std::string& own_name() const { return company_.nodes.hosts[company_.branch.own]; }
  // Returns the name of an emulated node; it is empty if this node is real.
  std::string emulated_name() const { return company_.nodes.are_emulated ? own_name() : ""; }
  process::OtherNodes& others() { return *peers_; }
  Ranks ranks() const;
  std::string remote_file() const { return path_ + "/nodes"; }

  // Tells all nodes where each takes commands. `known` is the address by which the job's processes
  // know this node; empty for the one that it has. The call is collective.
  Status share_ports(std::uint16_t own_port, const std::string& known = "");
  // Returns where all nodes are, whose processes know this one by the addresses `known`. The call
  // is collective.
  Result<process::Relocation> locate(const std::vector<std::string>& known);
  // Tells all nodes which ports have changed on each. The call is collective.
  Status share_moved_ports(process::Relocation& relocation);
  // Lets all agents leave the ports that the nodes of the job need, of which `ports` are those of
  // this one. The call is collective.
  Status make_room(const std::set<std::uint16_t>& ports);
  // Returns the path of the file by which nodes on one machine tell whose a port is.
  std::string ports_file() const { return path_ + "/" + kPortsName; }
  // Returns when all agents have called it. `own` is what has happened here. The call fails on all
  // agents if that did on one.
  Status agree(const Status& own);

  // Returns when all agents have called it, with what each has given. It fails as agree() does.
  Result<std::vector<ByteVector>> gather(const Status& own, ByteView mine);

  // Does the same with lists of texts, which hold no NUL.
  Result<std::vector<std::set<std::string>>> gather_lists(const std::set<std::string>& mine);

  // A round of communication fails on all agents if it fails on one. While the job stands still, an
  // agent may be silent for a short time only, beside the steps of processes that use verbs.
  enum class Patience { brief, verbs, long_ };
  void set_patience(Patience patience);
  // The first agent gives an order, which begins a round.
  Status give(const Order& order);
  // Returns a descriptor that is readable if an order may have come.
  int fd() const { return company_.mail->fd(); }
  // Returns the order that has come; nullopt if there is none yet.
  std::optional<Order> receive();
  // Lets the present round fail on all agents.
  void give_up(const Error& why);
  // Returns why this agent cannot communicate any more, if it cannot.
  const Error* lost() const { return company_.mail->lost(); }
  // The first agent returns when the others have ended, or after a while.
  void leave() const;

 private:
  Result<std::vector<std::string>> gather_texts(const std::string& mine);
  explicit Team(Company company) : company_(std::move(company)), comm_(company_.comm()) {}

  Company company_;
  std::unique_ptr<comm::Comm> comm_;
  std::unique_ptr<Peers> peers_;
  // Directory of the agent that writes it on this machine.
  std::optional<RemoteDirectory> directory_;
  std::string path_;
  Secret secret_;
};

}  // namespace diapause::agent
