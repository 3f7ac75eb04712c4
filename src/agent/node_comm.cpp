#include "agent/node_comm.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace diapause::agent {
namespace {

// One message holds those of several ranks: for each the rank, the length, and the bytes.
void add_entry(ByteVector& to, std::uint32_t rank, ByteView data) {
  const std::uint64_t head[] = {rank, data.size()};
  const ByteView parts[] = {std::as_bytes(std::span(head)), data};
  for (const ByteView part : parts) to.insert(to.end(), part.begin(), part.end());
}

Status read_entries(ByteView from, std::vector<ByteVector>& to) {
  while (!from.empty()) {
    std::uint64_t head[2] = {};
    if (from.size() < sizeof head) return fail(Code::comm, "an agent sends half a message");
    std::memcpy(head, from.data(), sizeof head);
    from = from.subspan(sizeof head);
    if (head[0] >= to.size() || head[1] > from.size())
      return fail(Code::comm, "an agent sends half a message");
    const ByteView data = from.first(head[1]);
    to[head[0]].assign(data.begin(), data.end());
    from = from.subspan(head[1]);
  }
  return {};
}

class NodeComm : public comm::Comm {
 public:
  NodeComm(Mail& mail, const Branch& branch, std::uint32_t node_leader)
      : mail_(mail), branch_(branch), children_(branch.children()), node_leader_(node_leader) {}

  std::uint32_t rank() const override { return branch_.own; }
  std::uint32_t size() const override { return branch_.size; }
  bool is_concurrent() const override { return false; }
  // Agents do all their work in one thread.
  Result<std::unique_ptr<comm::Comm>> split(const std::optional<Part>&) override {
    return fail(Code::internal, "agents communicate in one group");
  }
  void while_waiting(std::function<void()> meanwhile) override {
    mail_.while_waiting(std::move(meanwhile));
  }
  std::uint32_t node_leader() const override { return node_leader_; }

  Status barrier() override { return all_min(std::span<std::uint64_t>()); }

  Status broadcast(MutableBytes data, std::uint32_t root) override {
    if (root != 0) {
      DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all,
                          all_gather(rank() == root ? ByteView(data) : ByteView{}));
      return copy(all[root], data);
    }
    DIAPAUSE_TRY_ASSIGN(const ByteVector all, down(rank() == 0 ? ByteView(data) : ByteView{}));
    return copy(all, data);
  }

  Result<std::vector<ByteVector>> all_gather(ByteView mine) override {
    ByteVector entries;
    add_entry(entries, rank(), mine);
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> below, mail_.transfer({}, children_));
    for (const ByteVector& one : below) entries.insert(entries.end(), one.begin(), one.end());
    DIAPAUSE_TRY(to_parent(entries));
    DIAPAUSE_TRY_ASSIGN(const ByteVector all, down(entries));
    std::vector<ByteVector> gathered(size());
    DIAPAUSE_TRY(read_entries(all, gathered));
    return gathered;
  }

  Status all_min(std::span<std::uint64_t> values) override {
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> below, mail_.transfer({}, children_));
    for (const ByteVector& one : below) {
      std::vector<std::uint64_t> others(values.size());
      DIAPAUSE_TRY(copy(one, std::as_writable_bytes(std::span(others))));
      for (std::size_t i = 0; i < others.size(); ++i) values[i] = std::min(values[i], others[i]);
    }
    DIAPAUSE_TRY(to_parent(std::as_bytes(values)));
    DIAPAUSE_TRY_ASSIGN(const ByteVector all, down(std::as_bytes(values)));
    return copy(all, std::as_writable_bytes(values));
  }

  Status exchange(std::span<const comm::Send> sends,
                  std::span<const comm::Receive> receives) override {
    std::vector<Post> posts;
    std::vector<std::uint32_t> from;
    std::vector<ByteView> to_self;
    for (const comm::Send& send : sends) {
      if (send.peer == rank()) {
        to_self.push_back(send.data);
      } else {
        posts.push_back({send.peer, send.data});
      }
    }
    for (const comm::Receive& receive : receives) {
      if (receive.peer != rank()) from.push_back(receive.peer);
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> messages, mail_.transfer(posts, from));
    std::size_t next = 0, next_own = 0;
    for (const comm::Receive& receive : receives) {
      const bool is_own = receive.peer == rank();
      if (is_own && next_own == to_self.size())
        return fail(Code::internal, "a rank waits for itself");
      DIAPAUSE_TRY(copy(is_own ? to_self[next_own++] : ByteView(messages[next++]), receive.data));
    }
    return {};
  }

 private:
  static Status copy(ByteView from, MutableBytes to) {
    if (from.size() != to.size()) return fail(Code::comm, "a message of another length arrived");
    std::ranges::copy(from, to.begin());
    return {};
  }

  Status to_parent(ByteView data) {
    if (rank() == 0) return {};
    const Post up{branch_.parent(), data};
    return mail_.transfer({&up, 1}, {}).map([](const auto&) {});
  }

  // Hands on what comes from the root, which passes it.
  Result<ByteVector> down(ByteView of_root) {
    ByteVector data(of_root.begin(), of_root.end());
    if (rank() != 0) {
      const std::uint32_t parent = branch_.parent();
      DIAPAUSE_TRY_ASSIGN(std::vector<ByteVector> got, mail_.transfer({}, {&parent, 1}));
      data = std::move(got.front());
    }
    std::vector<Post> posts;
    for (const std::uint32_t child : children_) posts.push_back({child, data});
    DIAPAUSE_TRY(mail_.transfer(posts, {}));
    return data;
  }

  Mail& mail_;
  const Branch branch_;
  const std::vector<std::uint32_t> children_;
  const std::uint32_t node_leader_;
};

}  // namespace

std::vector<std::uint32_t> Branch::children() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 1; i <= fan_out; ++i) {
    const std::uint64_t child = std::uint64_t{own} * fan_out + i;
    if (child < size) found.push_back(static_cast<std::uint32_t>(child));
  }
  return found;
}

std::uint32_t Branch::height() const {
  std::uint32_t generations = 0;
  for (std::uint64_t first = own; first * fan_out + 1 < size; first = first * fan_out + 1)
    ++generations;
  return generations;
}

std::uint32_t Branch::depth() const {
  std::uint32_t generations = 0;
  for (Branch above = *this; above.own != 0; above.own = above.parent()) ++generations;
  return generations;
}

std::vector<std::uint32_t> Branch::neighbours() const {
  std::vector<std::uint32_t> found = children();
  if (own != 0) found.push_back(parent());
  return found;
}

Mail::Limits limits_of(const Branch& branch, double limit_s, double step_s) {
  Mail::Limits limits{limit_s + step_s * branch.height(), {}, 0};
  if (branch.own == 0) return limits;
  const std::uint32_t generations = Branch{0, branch.size, branch.fan_out}.height();
  limits.parent = branch.parent();
  limits.parent_s = limit_s + step_s * (generations + branch.depth());
  return limits;
}

std::unique_ptr<comm::Comm> make_node_comm(Mail& mail, const Branch& branch,
                                           std::uint32_t node_leader) {
  return std::make_unique<NodeComm>(mail, branch, node_leader);
}

}  // namespace diapause::agent
