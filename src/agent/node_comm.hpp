// Makes the agents of a job the ranks of the engine. Collective calls go up and down a tree, with
// one message for each agent and direction.
#pragma once

#include <memory>

#include "agent/mail.hpp"
#include "comm/comm.hpp"

namespace diapause::agent {

// A branch is the place of an agent in the tree: agent 0 is its root, and every agent has up to
// `fan_out` children.
struct Branch {
  std::uint32_t own = 0, size = 1, fan_out = 16;

  std::uint32_t parent() const { return (own - 1) / fan_out; }  // the root has none
  std::vector<std::uint32_t> children() const;
  // Returns how many generations there are below this agent, and above it.
  std::uint32_t height() const;
  std::uint32_t depth() const;
  // Returns the parent, if there is one, and the children.
  std::vector<std::uint32_t> neighbours() const;
};

// Returns how long an agent waits when no other may be silent for longer than `limit_s`. All wait
// because of one that is silent, and who waits for that one itself must be the first to say so.
// What comes up the tree has to come first, and what goes down it comes last.
Mail::Limits limits_of(const Branch& branch, double limit_s, double step_s);

// `mail` must outlive it. `node_leader` is the lowest rank that shares this machine.
std::unique_ptr<comm::Comm> make_node_comm(Mail& mail, const Branch& branch,
                                           std::uint32_t node_leader);

}  // namespace diapause::agent
