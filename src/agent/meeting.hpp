// Lets the agents of a job find each other: the first one starts the others through a command such
// as ssh, they come to it, and everyone learns where everyone is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/handshake.hpp"
#include "agent/mail.hpp"
#include "agent/node_comm.hpp"
#include "base/log.hpp"
#include "sys/network.hpp"

namespace diapause::agent {

// These are the nodes of a job, as a user gives them.
struct Nodes {
  // The first is this machine. If there is none, the job is on this machine alone.
  std::vector<std::string> hosts;
  bool are_emulated = false;  // all of them are this machine
  std::string remote_shell;   // `<words> HOST COMMAND` runs a command on a host
  std::uint32_t fan_out = 16;
  double limit_s = 60;  // so long an agent may be silent while the job stands still

  bool is_one() const { return hosts.size() < 2; }
};

// These say what the agents are to do.
enum class Beginning {
  anew,
  from_newest,  // it goes on from the newest version, if there is one, and is finished at status 0
};
struct Task {
  bool is_restart = false;
  Beginning beginning = Beginning::anew;  // for a launch
  std::optional<std::uint64_t> version;   // for a restart; empty for the newest
  std::vector<std::string> files = {};    // for a launch: patterns of files that belong to the job
  bool is_mapped = false;                 // for a restart: memory is filled while the job runs
};

// An invitation is what the first agent tells the others: lines of a name and a value. It goes
// through the standard input of the command that starts them, and holds the secret.
struct Invitation {
  Nodes nodes;
  std::uint32_t number = 0;  // number of the agent that is invited
  Secret secret;
  std::vector<std::string> addresses;  // where the first agent can be found
  std::uint16_t port = 0;
  std::string job, config_path, directory;
  std::vector<std::pair<std::string, std::string>> environment;
  Task task;

  std::string text() const;
  static Result<Invitation> parse(const std::string& text);
};

// These say where the agents of all nodes accept connections of each other.
struct Doors {
  std::vector<std::string> addresses;
  std::vector<std::uint16_t> ports;
  std::shared_ptr<sys::Listener> listener;  // that of this agent
};

// This is an agent among the others. It must stay where it is.
struct Company {
  std::unique_ptr<Mail> mail;
  Branch branch;
  Nodes nodes;
  std::shared_ptr<Doors> doors;
  std::vector<std::int64_t> started;  // processes by which the first agent has started the others

  std::unique_ptr<comm::Comm> comm() const;
  bool is_first() const { return branch.own == 0; }
};

// Does the first agent's part: it starts the others and waits for them. Code::not_found names hosts
// from which nobody came.
Result<Company> invite(Invitation invitation, const LogSink& log);
// Does the part of an agent that was invited.
Result<Company> come(const Invitation& invitation);

}  // namespace diapause::agent
