// Knows where the nodes of a job are after a restart on machines with other addresses. Its
// processes go on knowing each node by the addresses that it had when the job was launched.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// These are the addresses of a node, without ports, as text.
struct NodeAddresses {
  std::vector<std::string> known;  // those by which the job's processes know it
  // Those that it has now. The first is the one by which the other nodes reach it.
  std::vector<std::string> present;
};

// Says that a listening socket could not have its port and has another one.
struct MovedPort {
  std::uint32_t node = 0, family = 0;
  std::uint16_t known = 0, present = 0;
  bool operator==(const MovedPort&) const = default;
};

// Returns the addresses by which the processes of a stored job know their node. Images of older
// formats do not tell, and of them these are the addresses of its connections.
std::vector<std::string> known_addresses(const Job& job);

class Relocation {
 public:
  // The nodes are where the job's processes know them.
  Relocation() = default;
  // `nodes` are those of the job in their order, `own` is the number of this one.
  Relocation(std::vector<NodeAddresses> nodes, std::uint32_t own);
  // Reads what text() returned. Returns Code::argument for anything else.
  static Result<Relocation> parse(const std::string& text);
  std::string text() const;

  // Returns whether the processes know a node by an address that it does not have.
  bool is_needed() const;
  // Fails with Code::mismatch, by name, if this node's part of a job has a socket with an address
  // of a node that has none of that kind now. `job` has the addresses that are known.
  Status check(const Job& job) const;
  std::uint32_t own() const { return own_; }
  // Returns the addresses by which this node is known; nothing if that is where it is.
  std::vector<std::string> known_of_own() const {
    return own_ < nodes_.size() ? nodes_[own_].known : std::vector<std::string>{};
  }
  // Returns whether another node is on this machine, too, and was known by other addresses.
  bool shares_machine() const;

  // Returns where an internet address is that a process of the job names; any other address comes
  // back as it is.
  ByteVector present(const ByteVector& known) const;
  // Does the same, but leaves the port as it is.
  ByteVector present_host(const ByteVector& known) const;
  // Returns what the job's processes know as an address that the kernel tells. It is an address of
  // the node.
  ByteVector known(const ByteVector& present, std::uint32_t node) const;
  // Returns the node that has the address, this one if several have it, and kNone if none has.
  std::uint32_t node_of(const ByteVector& present) const;

  void move_port(const MovedPort& moved);
  const std::vector<MovedPort>& moved_ports() const { return moved_; }

  // Changes all addresses of this node's part of a job.
  void to_present(Job& job) const;
  void to_known(Job& job) const;

 private:
  // Returns what has become of a port of a node, from one side to the other, if it has changed.
  std::uint16_t moved_port(std::uint32_t node, const std::string& host, std::uint16_t port,
                           std::uint16_t MovedPort::*from, std::uint16_t MovedPort::*to) const;

  std::vector<NodeAddresses> nodes_;
  std::uint32_t own_ = 0;
  std::vector<MovedPort> moved_;
  // For each known address: its node, and where that is now.
  std::map<std::string, std::pair<std::uint32_t, std::string>> places_;
};

}  // namespace diapause::process
