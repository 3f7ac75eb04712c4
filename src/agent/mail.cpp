#include "agent/mail.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sys/process.hpp"

namespace diapause::agent {
namespace {

constexpr std::uint32_t kMagic = 0x44504d31;  // "DPM1"
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
constexpr int kLook_ms = 100;

// Returns an error as it travels: its code, errno and text.
ByteVector encode(const Error& error) {
  const std::int32_t numbers[] = {static_cast<std::int32_t>(error.code), error.os_errno};
  const ByteView head = std::as_bytes(std::span(numbers)),
                 text = as_byte_view(std::string_view(error.message));
  ByteVector bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

Error decode_error(ByteView bytes) {
  std::int32_t numbers[2] = {static_cast<std::int32_t>(Code::comm), 0};
  if (bytes.size() >= sizeof numbers) std::memcpy(numbers, bytes.data(), sizeof numbers);
  const ByteView text = bytes.subspan(std::min(bytes.size(), sizeof numbers));
  const bool is_known =
      numbers[0] <= static_cast<int>(Code::argument) && numbers[0] >= static_cast<int>(Code::again);
  return {is_known ? static_cast<Code>(numbers[0]) : Code::comm,
          std::string(reinterpret_cast<const char*>(text.data()), text.size()), numbers[1]};
}

}  // namespace

Result<Mail> Mail::open(std::uint32_t own, std::vector<std::string> names) {
  DIAPAUSE_TRY_ASSIGN(sys::WaitSet set, sys::WaitSet::open());
  return Mail(own, std::move(names), std::move(set));
}

Status Mail::add_link(std::uint32_t peer, sys::Stream stream) {
  DIAPAUSE_TRY(set_.add(stream.fd(), peer));
  links_[peer] = std::make_unique<Link>(std::move(stream));
  return {};
}

void Mail::begin_round(std::uint32_t round) {
  round_ = round;
  std::erase_if(boxes_, [&](const auto& box) { return box.first.first < round; });
  std::erase_if(given_up_, [&](const auto& one) { return one.first < round; });
}

std::optional<std::uint32_t> Mail::later_round_of(std::uint32_t peer) {
  while (pump(0)) continue;
  for (const auto& [key, box] : boxes_) {
    if (key.second == peer && key.first > round_ && !box.empty()) return key.first;
  }
  return std::nullopt;
}

void Mail::note_end_of_round(std::uint32_t round, const Error& why) {
  if (round < round_ || !given_up_.emplace(round, why).second) return;
  for (const std::uint32_t one : neighbours_) {
    if (!links_.contains(one)) continue;
    enqueue(one, kGivenUp, {}, encode(why));
    links_[one]->outgoing.back().head.round = round;
  }
}

void Mail::give_up(const Error& why) {
  note_end_of_round(round_, why);
  pump(0);
}

void Mail::close() {
  for (const auto& [peer, link] : links_) {
    enqueue(peer, kLeaving, {}, {});
    (void)send_from(*link);
    set_.remove(link->stream.fd());
  }
  links_.clear();
}

void Mail::enqueue(std::uint32_t peer, Kind kind, ByteView data, ByteVector own) {
  Link& link = *links_[peer];
  const std::uint64_t bytes = own.empty() ? data.size() : own.size();
  link.outgoing.push_back({{kMagic, kind, round_, 0, bytes}, data, std::move(own), 0});
  if (link.outgoing.back().data.empty()) link.outgoing.back().data = link.outgoing.back().own;
  set_.change(link.stream.fd(), peer, sys::WaitSet::Wants::reading_and_writing);
}

Status Mail::send_from(Link& link) {
  while (!link.outgoing.empty()) {
    Outgoing& next = link.outgoing.front();
    const ByteView head = as_byte_view(next.head);
    const ByteView left = next.sent < head.size() ? head.subspan(next.sent)
                                                  : next.data.subspan(next.sent - head.size());
    std::size_t sent = 0;
    if (!left.empty()) {
      DIAPAUSE_TRY_ASSIGN(sent, link.stream.send_some(left));
      if (sent == 0) return {};
    }
    next.sent += sent;
    if (next.sent == head.size() + next.data.size()) link.outgoing.pop_front();
  }
  return {};
}

Status Mail::receive_into(std::uint32_t peer, Link& link) {
  for (;;) {
    const bool is_head = link.head_bytes < sizeof link.head;
    MutableBytes room =
        is_head ? std::as_writable_bytes(std::span(&link.head, 1)).subspan(link.head_bytes)
                : MutableBytes(link.body).subspan(link.body_bytes);
    DIAPAUSE_TRY_ASSIGN(const std::size_t got, link.stream.receive_some(room));
    if (got == 0) return {};
    (is_head ? link.head_bytes : link.body_bytes) += got;
    if (link.head_bytes < sizeof link.head) continue;
    if (is_head) {
      if (link.head.magic != kMagic || link.head.bytes > kMostBytes)
        return fail(Code::corrupt, "it sends nonsense");
      link.body.resize(link.head.bytes);
    }
    if (link.body_bytes == link.body.size()) take(peer, link);
  }
}

void Mail::take(std::uint32_t peer, Link& link) {
  const std::uint32_t round = link.head.round;
  ByteVector body = std::exchange(link.body, {});
  link.head_bytes = link.body_bytes = 0;
  if (link.head.kind == kLeaving) link.is_leaving = true;
  if (round < round_ || link.is_leaving) return;
  if (link.head.kind == kGivenUp) {
    note_end_of_round(round, decode_error(body));
  } else {
    boxes_[{round, peer}].push_back(std::move(body));
  }
}

void Mail::lose(std::uint32_t peer, const Error& why) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  const bool was_leaving = found->second->is_leaving;
  set_.remove(found->second->stream.fd());
  links_.erase(found);
  const Error gone{Code::comm,
                   fmt::format("{} cannot be reached: {}", names_[peer],
                               was_leaving ? "its agent has ended" : why.message.c_str())};
  gone_.push_back({peer, gone, was_leaving});
  if (!was_leaving) note_end_of_round(round_, gone);
}

// Sends and receives what is possible. Returns whether anything was.
bool Mail::pump(int most_ms) {
  const std::vector<std::uint32_t> ready = set_.wait(most_ms);
  for (const std::uint32_t peer : ready) {
    const auto found = links_.find(peer);
    if (found == links_.end()) continue;
    Link& link = *found->second;
    Status done = send_from(link);
    if (done && link.outgoing.empty())
      set_.change(link.stream.fd(), peer, sys::WaitSet::Wants::reading);
    if (const Status received = receive_into(peer, link); !received) done = received;
    if (!done) lose(peer, done.error());
  }
  return !ready.empty();
}

Status Mail::trouble(std::span<const std::uint32_t> needed) const {
  if (const auto found = given_up_.find(round_); found != given_up_.end())
    return fail(found->second);
  const auto lacking = std::ranges::find_if(gone_, [&](const Gone& one) {
    return !one.was_leaving || std::ranges::find(needed, one.peer) != needed.end();
  });
  return lacking == gone_.end() ? Status{} : fail(lacking->why);
}

bool Mail::is_flushed() const {
  return std::ranges::all_of(links_, [](const auto& one) { return one.second->outgoing.empty(); });
}

std::string Mail::missing(std::span<const std::uint32_t> from) const {
  std::vector<std::string> missing;
  for (const std::uint32_t peer : from) {
    if (const auto box = boxes_.find({round_, peer}); box == boxes_.end() || box->second.empty()) {
      missing.push_back(names_[peer]);
    }
  }
  if (!missing.empty()) return fmt::format("{}", fmt::join(missing, ", "));
  for (const auto& [peer, link] : links_) {
    if (!link->outgoing.empty()) missing.push_back(names_[peer]);
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

double Mail::limit_s(std::span<const std::uint32_t> from) const {
  const bool waits_for_parent =
      limits_.parent && std::ranges::find(from, *limits_.parent) != from.end();
  return waits_for_parent ? limits_.parent_s : limits_.seconds;
}

Result<std::vector<ByteVector>> Mail::transfer(std::span<const Post> posts,
                                               std::span<const std::uint32_t> from) {
  std::map<std::uint32_t, std::size_t> wanted;
  for (const std::uint32_t peer : from) ++wanted[peer];
  const auto has_come = [&] {
    return std::ranges::all_of(wanted, [&](const auto& one) {
      return boxes_[{round_, one.first}].size() >= one.second;
    });
  };
  // What a peer sent before it was lost still counts: the last order of the first agent, say.
  const bool needs_nobody_else =
      has_come() && !given_up_.contains(round_) &&
      std::ranges::all_of(posts, [&](const Post& post) { return has_link(post.peer); });
  const auto awaited = [&] {
    std::vector<std::uint32_t> peers;
    for (const auto& [peer, count] : wanted) {
      if (boxes_[{round_, peer}].size() < count) peers.push_back(peer);
    }
    return peers;
  };
  std::vector<std::uint32_t> unknown;
  for (const Post& post : posts) unknown.push_back(post.peer);
  if (!needs_nobody_else) {
    const std::vector<std::uint32_t> senders = awaited();
    unknown.insert(unknown.end(), senders.begin(), senders.end());
    DIAPAUSE_TRY(trouble(unknown));
  }
  std::erase_if(unknown, [&](std::uint32_t peer) { return has_link(peer); });
  if (!unknown.empty()) {
    std::ranges::sort(unknown);
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    DIAPAUSE_TRY(connect_(*this, unknown));
  }
  for (const Post& post : posts) enqueue(post.peer, kMessage, post.data, {});
  // Without a copy of their own, posts must not stay behind when this call returns.
  const auto leave = [&] {
    for (auto& [peer, link] : links_) {
      for (Outgoing& one : link->outgoing) {
        if (!one.own.empty() || one.data.empty()) continue;
        one.own.assign(one.data.begin(), one.data.end());
        one.data = one.own;
      }
    }
  };
  const double most_s = limit_s(from);
  double last_s = sys::monotonic_s();
  while (!is_flushed() || !has_come()) {
    if (meanwhile_) meanwhile_();
    if (pump(meanwhile_ ? 1 : kLook_ms)) last_s = sys::monotonic_s();
    if (needs_nobody_else && is_flushed()) break;
    if (const Status bad = trouble(awaited()); !bad) {
      leave();
      return fail(bad.error());
    }
    if (sys::monotonic_s() - last_s > most_s) {
      leave();
      const Error late{Code::timeout,
                       fmt::format("{} did not answer within {:g} s", missing(from), most_s)};
      give_up(late);
      return fail(late);
    }
  }
  std::vector<ByteVector> messages;
  for (const std::uint32_t peer : from) {
    std::deque<ByteVector>& box = boxes_[{round_, peer}];
    messages.push_back(std::move(box.front()));
    box.pop_front();
  }
  return messages;
}

}  // namespace diapause::agent
