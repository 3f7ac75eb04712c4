#include "process/relocation.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "process/sockets.hpp"

namespace diapause::process {
namespace {

constexpr const char* kEnd = "end";

int family_of_host(const std::string& host) {
  return host.find(':') == std::string::npos ? AF_INET : AF_INET6;
}

template <class T>
ByteVector bytes_of(const T& address) {
  const ByteView bytes = as_byte_view(address);
  return {bytes.begin(), bytes.end()};
}

// Returns an address in the family of `like`, which may have to hold an address of IPv4 as one of
// IPv6.
ByteVector make_address(const std::string& host, std::uint16_t port, const ByteVector& like) {
  if (family_of_host(host) == AF_INET) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &four.sin_addr);
    const bool is_inside_of_six = like.size() == sizeof(sockaddr_in6);
    return address_for_family(bytes_of(four), is_inside_of_six ? AF_INET6 : AF_INET);
  }
  sockaddr_in6 six{};
  std::memcpy(&six, like.data(), std::min(like.size(), sizeof six));  // keeps flow and scope
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr);
  return bytes_of(six);
}

bool has(const std::vector<std::string>& hosts, const std::string& host) {
  return std::ranges::find(hosts, host) != hosts.end();
}

// Returns whether the address leads to the machine on which it is used, whichever that is.
bool is_within_machine(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "0.0.0.0" || host == "::";
}

// Returns the address by which a node is to be reached that was known by `host`, or nothing.
std::string place_of(const NodeAddresses& node, const std::string& host) {
  if (has(node.present, host)) return host;
  const auto first = std::ranges::find(node.present, family_of_host(host), family_of_host);
  return first == node.present.end() ? "" : *first;
}

}  // namespace

std::vector<std::string> known_addresses(const Job& job) {
  std::vector<std::string> known = job.addresses;
  if (!known.empty()) return known;
  for (const Socket& one : job.sockets) {
    const std::string host = host_of_address(one.local);
    const bool is_connected = one.state == SocketState::connected && !host.empty();
    if (is_connected && !is_within_machine(host) && !has(known, host)) known.push_back(host);
  }
  return known;
}

Relocation::Relocation(std::vector<NodeAddresses> nodes, std::uint32_t own)
    : nodes_(std::move(nodes)), own_(own) {
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    for (const std::string& host : nodes_[number].known)
      places_.try_emplace(host, number, place_of(nodes_[number], host));
  }
}

std::string Relocation::text() const {
  std::string text = fmt::format("own {}\n", own_);
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    for (const std::string& host : nodes_[number].known)
      text += fmt::format("known {} {}\n", number, host);
    for (const std::string& host : nodes_[number].present)
      text += fmt::format("present {} {}\n", number, host);
  }
  for (const MovedPort& one : moved_)
    text += fmt::format("moved {} {} {} {}\n", one.node, one.family, one.known, one.present);
  return text + kEnd + "\n";
}

Result<Relocation> Relocation::parse(const std::string& text) {
  constexpr std::uint32_t kMostNodes = 1u << 20;
  std::vector<NodeAddresses> nodes;
  std::uint32_t own = 0;
  std::vector<MovedPort> moved;
  std::istringstream lines(text);
  std::string word;
  bool is_sound = true;
  while (is_sound && lines >> word && word != kEnd) {
    std::uint32_t number = 0;
    is_sound = static_cast<bool>(lines >> number) && number < kMostNodes;
    if (!is_sound) break;
    if (word == "own") {
      own = number;
    } else if (word == "known" || word == "present") {
      if (number >= nodes.size()) nodes.resize(number + 1);
      std::string& host =
          (word == "known" ? nodes[number].known : nodes[number].present).emplace_back();
      is_sound = static_cast<bool>(lines >> host);
    } else if (word == "moved") {
      MovedPort one;
      one.node = number;
      is_sound = static_cast<bool>(lines >> one.family >> one.known >> one.present);
      moved.push_back(one);
    } else {
      is_sound = false;
    }
  }
  if (!is_sound || word != kEnd) return fail(Code::argument, "this is no list of addresses");
  Relocation made(std::move(nodes), own);
  made.moved_ = std::move(moved);
  return made;
}

bool Relocation::is_needed() const {
  return !moved_.empty() || std::ranges::any_of(places_, [](const auto& one) {
    return one.first != one.second.second && !one.second.second.empty();
  });
}

Status Relocation::check(const Job& job) const {
  for (const Socket& one : job.sockets) {
    for (const ByteVector& address : {one.local, one.remote}) {
      const auto place = places_.find(host_of_address(address));
      if (place == places_.end() || !place->second.second.empty()) continue;
      const int kind = family_of_host(place->first) == AF_INET ? 4 : 6;
      return fail(Code::mismatch,
                  fmt::format("the job has {}, an address of node {}, which has no address of that "
                              "kind (IPv{}) now: restart on nodes that have",
                              text_of_address(address), place->second.first, kind));
    }
  }
  return {};
}

bool Relocation::shares_machine() const {
  if (own_ >= nodes_.size()) return false;
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    const bool is_same = nodes_[number].present == nodes_[own_].present;
    if (number != own_ && is_same && nodes_[number].known != nodes_[own_].known) return true;
  }
  return false;
}

std::uint16_t Relocation::moved_port(std::uint32_t node, const std::string& host,
                                     std::uint16_t port, std::uint16_t MovedPort::*from,
                                     std::uint16_t MovedPort::*to) const {
  const auto family = static_cast<std::uint32_t>(family_of_host(host));
  const auto moved = std::ranges::find_if(moved_, [&](const MovedPort& one) {
    return one.node == node && one.family == family && one.*from == port;
  });
  return moved == moved_.end() ? port : (*moved).*to;
}

ByteVector Relocation::present(const ByteVector& known) const {
  const std::string host = host_of_address(known);
  const auto found = places_.find(host);
  const bool is_within = is_within_machine(host);
  if (!is_within && (found == places_.end() || found->second.second.empty())) return known;
  const std::uint32_t node = is_within ? own_ : found->second.first;
  const std::string& now = is_within ? host : found->second.second;
  const std::uint16_t port =
      moved_port(node, now, port_of(known), &MovedPort::known, &MovedPort::present);
  return now == host && port == port_of(known) ? known : make_address(now, port, known);
}

ByteVector Relocation::present_host(const ByteVector& known) const {
  const auto found = places_.find(host_of_address(known));
  if (found == places_.end() || found->second.second.empty()) return known;
  return found->first == found->second.second
             ? known
             : make_address(found->second.second, port_of(known), known);
}

ByteVector Relocation::known(const ByteVector& present, std::uint32_t node) const {
  const std::string host = host_of_address(present);
  if (host.empty() || node >= nodes_.size()) return present;
  const NodeAddresses& its = nodes_[node];
  const std::uint16_t port =
      moved_port(node, host, port_of(present), &MovedPort::present, &MovedPort::known);
  std::string known_host = host;
  if (!has(its.known, host) && has(its.present, host)) {
    const auto by_place = std::ranges::find_if(
        its.known, [&](const std::string& one) { return place_of(its, one) == host; });
    const auto by_family = std::ranges::find(its.known, family_of_host(host), family_of_host);
    if (by_place != its.known.end()) {
      known_host = *by_place;
    } else if (by_family != its.known.end()) {
      known_host = *by_family;
    }
  }
  if (known_host == host && port == port_of(present)) return present;
  return make_address(known_host, port, present);
}

std::uint32_t Relocation::node_of(const ByteVector& present) const {
  const std::string host = host_of_address(present);
  if (host.empty()) return kNone;
  if (own_ < nodes_.size() && has(nodes_[own_].present, host)) return own_;
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    if (has(nodes_[number].present, host)) return number;
  }
  return kNone;
}

void Relocation::move_port(const MovedPort& moved) {
  if (std::ranges::find(moved_, moved) == moved_.end()) moved_.push_back(moved);
}

void Relocation::to_present(Job& job) const {
  for (Socket& one : job.sockets) {
    one.local = present_host(one.local);
    one.remote = present_host(one.remote);
    for (ByteVector& sender : one.senders) sender = present_host(sender);
  }
}

// The other end of a connection within the node has an address of the node, too.
void Relocation::to_known(Job& job) const {
  std::vector<std::uint32_t> nodes(job.sockets.size(), own_);
  for (const FarEnd& one : job.far_ends) nodes[one.socket] = one.node;
  for (std::size_t i = 0; i < job.sockets.size(); ++i) {
    Socket& one = job.sockets[i];
    one.local = known(one.local, own_);
    one.remote = known(one.remote, nodes[i]);
    for (ByteVector& sender : one.senders) sender = known(sender, own_);
  }
}

}  // namespace diapause::process
