#include "agent/peers.hpp"

#include <cstring>
#include <map>
#include <sstream>

#include "process/sockets.hpp"

namespace diapause::agent {
namespace {

// Lists of bytes in one message.
void add(ByteVector& to, ByteView bytes) {
  const std::uint64_t length = bytes.size();
  const ByteView head = as_byte_view(length);
  to.insert(to.end(), head.begin(), head.end());
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Result<ByteVector> take(ByteView& from) {
  std::uint64_t length = 0;
  if (from.size() >= sizeof length) std::memcpy(&length, from.data(), sizeof length);
  if (from.size() < sizeof length || length > from.size() - sizeof length) {
    return fail(Code::comm, "an agent sends half a message");
  }
  const ByteView bytes = from.subspan(sizeof length, length);
  from = from.subspan(sizeof length + length);
  return ByteVector(bytes.begin(), bytes.end());
}

Result<std::uint32_t> take_number(ByteView& from) {
  DIAPAUSE_TRY_ASSIGN(const ByteVector bytes, take(from));
  std::uint32_t number = 0;
  if (bytes.size() != sizeof number) return fail(Code::comm, "an agent sends half a message");
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

std::string text_of(const ByteVector& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::unique_ptr<Peers>> Peers::open(Company& company, comm::Comm& comm) {
  std::unique_ptr<Peers> peers(new Peers(company, comm));
  std::string mine;
  for (const std::string& address : sys::own_addresses()) mine += address + " ";
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all,
                      comm.all_gather(as_byte_view(std::string_view(mine))));
  for (const ByteVector& one : all) {
    std::istringstream words(text_of(one));
    for (std::string address; words >> address;) peers->addresses_.insert(address);
  }
  return peers;
}

bool Peers::is_of_job(const ByteVector& address) const {
  const std::string host = process::host_of_address(address);
  return addresses_.contains(host) || (company_.nodes.are_emulated && is_loopback(host));
}

bool Peers::may_lead_elsewhere(const Addresses& end) const {
  return company_.nodes.are_emulated || !is_loopback(process::host_of_address(end.remote));
}

Result<std::vector<Peers::Place>> Peers::find(const std::vector<Addresses>& ends) {
  ByteVector mine;
  for (const Addresses& one : ends) {
    const bool is_asked = may_lead_elsewhere(one);
    add(mine, is_asked ? ByteView(one.local) : ByteView());
    add(mine, is_asked ? ByteView(one.remote) : ByteView());
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, comm_.all_gather(mine));
  using Texts = std::pair<std::string, std::string>;
  std::map<Texts, Place> places;  // by the local and the remote address
  for (std::uint32_t node = 0; node < all.size(); ++node) {
    if (node == own_number()) continue;
    ByteView left = all[node];
    for (std::uint32_t number = 0; !left.empty(); ++number) {
      DIAPAUSE_TRY_ASSIGN(ByteVector local, take(left));
      DIAPAUSE_TRY_ASSIGN(ByteVector remote, take(left));
      if (!local.empty()) places[{text_of(local), text_of(remote)}] = {node, number};
    }
  }
  std::vector<Place> found;
  for (const Addresses& one : ends) {
    const auto other = may_lead_elsewhere(one)
                           ? places.find({text_of(one.remote), text_of(one.local)})
                           : places.end();
    found.push_back(other == places.end() ? Place() : other->second);
  }
  return found;
}

Result<std::vector<ByteVector>> Peers::swap(const std::vector<Place>& peers,
                                            const std::vector<ByteVector>& bytes) {
  std::map<std::uint32_t, ByteVector> letters;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (peers[i].node == process::kNone) continue;
    ByteVector& letter = letters[peers[i].node];
    add(letter, as_byte_view(peers[i].number));
    add(letter, bytes[i]);
  }
  std::vector<Post> posts;
  std::vector<std::uint32_t> from;
  for (const auto& [node, letter] : letters) {
    if (node >= company_.mail->size() || node == own_number()) {
      return fail(Code::corrupt, "a connection leads to a node that the job does not have");
    }
    posts.push_back({node, letter});
    from.push_back(node);
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> answers, company_.mail->transfer(posts, from));
  std::vector<ByteVector> theirs(peers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (ByteView left = answers[i]; !left.empty();) {
      DIAPAUSE_TRY_ASSIGN(const std::uint32_t number, take_number(left));
      if (number >= peers.size() || peers[number].node != from[i]) {
        return fail(Code::corrupt,
                    "two nodes do not agree on which connections lead from one to the other");
      }
      DIAPAUSE_TRY_ASSIGN(theirs[number], take(left));
    }
  }
  return theirs;
}

}  // namespace diapause::agent
