// Posts messages, and takes completions.
//
// While every number is still the one that the adapter gave, requests to connected queue pairs are
// passed on untouched, and only counted. Receives are remembered, because a checkpoint takes them
// from the adapter and has to give them back.
//
// What every message passes is compiled into the functions that programs call: calls between these
// parts would take as many instructions as the parts do. These functions keep one register at most:
// what is needed after the adapter's call is in the object, which belongs to whoever has its lock.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

constexpr std::size_t kBatch = 16;  // messages that are handed on at once
constexpr std::size_t kPieces =
    64;  // pieces of memory that these may have together, or one message alone
#define DIAPAUSE_HOT [[gnu::always_inline]] inline
#define DIAPAUSE_COLD [[gnu::noinline]]

// A receiver in a request to send a datagram: the number of a queue pair, and its key.
constexpr std::size_t kQueueBytes = 2 * sizeof(std::uint32_t);

constexpr std::uint64_t kMarkerId = 0x6d61726b'6d61726b;
constexpr std::uint32_t kGrhBytes = 40, kIpv4At = 20;

// Sets of operations have a bit for each.
constexpr std::uint32_t set_of(std::initializer_list<ibv_wr_opcode> opcodes) {
  std::uint32_t bits = 0;
  for (const ibv_wr_opcode one : opcodes) bits |= 1U << one;
  return bits;
}

constexpr std::uint32_t kOneSided =
    set_of({IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ});
constexpr std::uint32_t kAtomic = set_of({IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD});

bool is_in(std::uint32_t set, ibv_wr_opcode opcode) {
  return opcode < 32 && (set >> opcode & 1) != 0;
}

bool is_supported(const ibv_send_wr& one) {
  return static_cast<unsigned>(one.opcode) <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// Tells whether it takes a receive of the peer.
DIAPAUSE_HOT bool is_two_sided(const ibv_send_wr& one) {
  return one.opcode >= IBV_WR_RDMA_WRITE_WITH_IMM && one.opcode <= IBV_WR_SEND_WITH_IMM;
}
static_assert(IBV_WR_SEND == 2 && IBV_WR_SEND_WITH_IMM == 3 && IBV_WR_ATOMIC_FETCH_AND_ADD == 6);

bool is_signalled(const QueuePair& pair, const ibv_send_wr& one) {
  return pair.init.sq_sig_all != 0 || (one.send_flags & IBV_SEND_SIGNALED) != 0;
}

// Notes where the signalled ones of these sends are among all. This must be done before they are
// posted, because they may complete at once.
DIAPAUSE_HOT void note_positions(QueuePair& pair, const ibv_send_wr* from) {
  if (pair.positions.empty()) return;
  std::uint64_t signalled = pair.signalled, posted = pair.posted;
  for (const ibv_send_wr* one = from; one != nullptr; one = one->next) {
    ++posted;
    if (!is_signalled(pair, *one)) continue;
    pair.positions[++signalled % pair.positions.size()] = posted;
  }
}

DIAPAUSE_HOT void count_signal(QueuePair& pair, const ibv_send_wr& one) {
  if (pair.init.sq_sig_all != 0) {
    ++pair.signalled;
  } else if ((one.send_flags & IBV_SEND_SIGNALED) != 0) {
    ++pair.signalled;
    pair.ends_silently = false;
  } else {
    pair.ends_silently = true;
  }
}

void count_sent(QueuePair& pair, const ibv_send_wr* from, const ibv_send_wr* until) {
  for (const ibv_send_wr* one = from; one != until && one != nullptr; one = one->next) {
    count_signal(pair, *one);
    pair.sent += is_two_sided(*one) ? 1 : 0;
    ++pair.posted;
  }
}

std::uint32_t real_number(Shim& shim, Handle& handle, std::uint32_t shown) {
  const std::uint64_t last = handle.last.load(std::memory_order_relaxed);
  if (last != 0 && static_cast<std::uint32_t>(last) == shown)
    return static_cast<std::uint32_t>(last >> 32);
  const Record* const peer = shim.directory.find_pair(handle.address, shown);
  const std::uint32_t real = peer == nullptr ? shown : peer->real;
  handle.last.store(std::uint64_t{real} << 32 | shown, std::memory_order_relaxed);
  return real;
}

// Messages as the adapter must see them. They are valid until the next call.
class Translation {
 public:
  Translation(Shim& shim, QueuePair& pair)
      : shim_(shim), pair_(pair), keys_(pair.context().local_keys) {}

  // Translates as many as fit. Returns the first that did not, or null.
  ibv_send_wr* take(ibv_send_wr* from) {
    count_ = used_ = 0;
    ibv_send_wr* one = from;
    for (; one != nullptr && count_ < kBatch && fits(*one); one = one->next) add(*one);
    for (std::size_t i = 0; i + 1 < count_; ++i) copies_[i].next = &copies_[i + 1];
    if (count_ > 0) copies_[count_ - 1].next = nullptr;
    return one;
  }
  ibv_send_wr* first() { return copies_.data(); }
  ibv_send_wr* original(const ibv_send_wr* copy) {
    return originals_[static_cast<std::size_t>(copy - copies_.data())];
  }
  bool is_empty() const { return count_ == 0; }

 private:
  bool fits(const ibv_send_wr& one) const {
    return used_ + static_cast<std::size_t>(one.num_sge) <= kPieces;
  }

  void add(ibv_send_wr& one) {
    ibv_send_wr& copy = copies_[count_];
    originals_[count_++] = &one;
    copy = one;
    if (!keys_.is_empty()) {
      copy.sg_list = &pieces_[used_];
      for (int i = 0; i < one.num_sge; ++i) {
        pieces_[used_] = one.sg_list[i];
        pieces_[used_].lkey = keys_.real(one.sg_list[i].lkey);
        ++used_;
      }
    }
    if (pair_.shown.qp_type == IBV_QPT_UD) {
      Handle& handle = of(one.wr.ud.ah);
      copy.wr.ud.ah = handle.real;
      copy.wr.ud.remote_qpn = real_number(shim_, handle, one.wr.ud.remote_qpn);
    } else if (is_in(kOneSided, one.opcode)) {
      copy.wr.rdma.rkey = shim_.directory.real_key(pair_.peer_home, one.wr.rdma.rkey);
    } else if (is_in(kAtomic, one.opcode)) {
      copy.wr.atomic.rkey = shim_.directory.real_key(pair_.peer_home, one.wr.atomic.rkey);
    }
  }

  Shim& shim_;
  QueuePair& pair_;
  const Numbers& keys_;
  std::array<ibv_send_wr, kBatch> copies_;
  std::array<ibv_send_wr*, kBatch> originals_;
  std::array<ibv_sge, kPieces> pieces_;
  std::size_t count_ = 0, used_ = 0;
};

DIAPAUSE_COLD int post_translated(Shim& shim, QueuePair& pair, ibv_send_wr* from,
                                  ibv_send_wr** bad) {
  Translation translation(shim, pair);
  while (from != nullptr) {
    ibv_send_wr* const next = translation.take(from);
    if (translation.is_empty()) {
      *bad = from;
      return EINVAL;  // more pieces than any adapter takes
    }
    ibv_send_wr* bad_copy = nullptr;
    const int error = pair.post_send(pair.real, translation.first(), &bad_copy);
    if (error != 0) {
      *bad = bad_copy == nullptr ? from : translation.original(bad_copy);
      count_sent(pair, from, *bad);
      return error;
    }
    count_sent(pair, from, next);
    from = next;
  }
  return 0;
}

// The caller has the lock of the pair.
DIAPAUSE_COLD int post_list(QueuePair& pair, ibv_send_wr* from, ibv_send_wr** bad) {
  Shim& shim = Shim::get();
  note_positions(pair, from);
  if (pair.shown.qp_type == IBV_QPT_UD || !shim.directory.is_trivial())
    return post_translated(shim, pair, from, bad);
  const int error = pair.post_send(pair.real, from, bad);
  count_sent(pair, from, error == 0 ? nullptr : *bad);
  return error;
}

DIAPAUSE_COLD int post_more(QueuePair& pair, ibv_send_wr* from, ibv_send_wr** bad) {
  for (ibv_send_wr* one = from; one != nullptr; one = one->next) {
    if (is_supported(*one)) continue;
    *bad = from;
    return EOPNOTSUPP;
  }
  const Holding holding(pair.lock);
  return post_list(pair, from, bad);
}

// A datagram leads to its receiver by an object of this library, even if every number is the
// adapter's. What the adapter reads of its request is copied.
DIAPAUSE_HOT int post_datagram(QueuePair& pair, const ibv_send_wr& one, ibv_send_wr** bad) {
  ibv_send_wr& copy = pair.datagram;
  std::memcpy(static_cast<void*>(&copy), &one, offsetof(ibv_send_wr, wr));
  copy.wr.ud.ah = of(one.wr.ud.ah).real;
  std::memcpy(&copy.wr.ud.remote_qpn, &one.wr.ud.remote_qpn, kQueueBytes);
  return pair.post_send(pair.real, &copy, bad);
}

// Takes the last send back, which was counted and not posted. Whether those before it end silently
// is not known any more: a marker too many does no harm.
DIAPAUSE_COLD int take_back(QueuePair& pair, int error) {
  const auto& [one, bad] = pair.posting;
  *bad = one;
  if (pair.plain.posts == QueuePair::Posts::untouched && is_two_sided(*one)) --pair.sent;
  pair.signalled -= is_signalled(pair, *one) ? 1 : 0;
  pair.ends_silently = true;
  return error;
}

enum class Sides { one, two };  // those that have to post something

// Posts one message, which it counts before, so that nothing of the call has to be kept meanwhile.
// The caller has the lock.
DIAPAUSE_HOT int post_one(QueuePair& pair, ibv_send_wr* one, ibv_send_wr** bad, Sides sides) {
  int error = 0;
  if (pair.plain.posts == QueuePair::Posts::untouched) {
    pair.posting = {one, bad};
    if (sides == Sides::two) ++pair.sent;
    count_signal(pair, *one);
    error = pair.post_send(pair.real, one, bad);
  } else if (pair.plain.posts == QueuePair::Posts::datagrams) {
    pair.posting = {one, bad};
    count_signal(pair, *one);
    error = post_datagram(pair, *one, bad);
  } else {
    return post_list(pair, one, bad);
  }
  return error == 0 ? 0 : take_back(pair, error);
}

DIAPAUSE_COLD int post_in_turn(QueuePair& pair, ibv_send_wr* one, ibv_send_wr** bad) {
  const Holding holding(pair.lock);
  return post_one(pair, one, bad, is_two_sided(*one) ? Sides::two : Sides::one);
}

DIAPAUSE_COLD int post_any(QueuePair& pair, ibv_send_wr* from, ibv_send_wr** bad) {
  if (from == nullptr || from->next != nullptr || !is_supported(*from))
    return post_more(pair, from, bad);
  return post_in_turn(pair, from, bad);
}

int post_send(ibv_qp* shown, ibv_send_wr* from, ibv_send_wr** bad) {
  QueuePair& pair = of(shown);
  if (from == nullptr || from->next != nullptr || !is_two_sided(*from))
    return post_any(pair, from, bad);
  if (!pair.lock.try_lock()) return post_in_turn(pair, from, bad);
  const Holding holding(pair.lock, std::adopt_lock);
  return post_one(pair, from, bad, Sides::two);
}

DIAPAUSE_HOT int post_to(const QueuePair& pair, ibv_recv_wr& one, ibv_recv_wr** bad) {
  return pair.post_recv(pair.real, &one, bad);
}

DIAPAUSE_HOT int post_to(const SharedQueue& queue, ibv_recv_wr& one, ibv_recv_wr** bad) {
  return queue.real->context->ops.post_srq_recv(queue.real, &one, bad);
}

const Numbers& keys_of(const QueuePair& pair) { return pair.context().local_keys; }
const Numbers& keys_of(const SharedQueue& queue) { return of(queue.shown.context).local_keys; }

// Hands a receive to the adapter, with real keys.
template <class Queue>
int post_slot(Queue& queue, Receives::Slot& slot) {
  ibv_recv_wr* bad = nullptr;
  const Numbers& keys = keys_of(queue);
  if (keys.is_empty()) return post_to(queue, slot.real, &bad);
  const std::span<const ibv_sge> known = queue.receives.pieces_of(slot);
  std::array<ibv_sge, kPieces> pieces;
  if (known.size() > pieces.size()) return EINVAL;
  std::ranges::transform(known, pieces.begin(), [&](ibv_sge one) {
    one.lkey = keys.real(one.lkey);
    return one;
  });
  ibv_recv_wr real = slot.real;
  real.sg_list = pieces.data();
  return post_to(queue, real, &bad);
}

DIAPAUSE_COLD int take_back(Receives& receives, int error) {
  receives.undo_take(*receives.posting.slot);
  *receives.posting.bad = receives.posting.one;
  return error;
}

// The caller has the lock.
template <class Queue>
DIAPAUSE_COLD int post_all(Queue& queue, ibv_recv_wr* from, ibv_recv_wr** bad) {
  Receives& receives = queue.receives;
  for (; from != nullptr; from = from->next) {
    const bool can_be = receives.can_be(*from);
    Receives::Slot* const slot = can_be ? receives.take(*from) : nullptr;
    if (slot == nullptr) {
      *bad = from;
      return can_be ? ENOMEM : EINVAL;
    }
    receives.posting = {from, slot, bad};
    const int error = post_slot(queue, *slot);
    if (error != 0) return take_back(receives, error);
  }
  return 0;
}

template <class Queue>
DIAPAUSE_COLD int post_in_turn(Queue& queue, ibv_recv_wr* from, ibv_recv_wr** bad) {
  const Holding holding(queue.receives.lock);
  return post_all(queue, from, bad);
}

// Most programs post receives of one piece of memory one by one.
template <class Queue>
DIAPAUSE_HOT int post_receives(Queue& queue, ibv_recv_wr* from, ibv_recv_wr** bad) {
  Receives& receives = queue.receives;
  if (from == nullptr || from->next != nullptr || from->num_sge != 1)
    return post_in_turn(queue, from, bad);
  if (!receives.lock.try_lock()) return post_in_turn(queue, from, bad);
  const Holding holding(receives.lock, std::adopt_lock);
  if (!receives.is_plain()) return post_all(queue, from, bad);
  Receives::Slot* const slot = receives.take_one(*from);
  if (slot == nullptr) return post_all(queue, from, bad);
  receives.posting = {from, slot, bad};
  const int error = post_to(queue, slot->real, bad);
  return error == 0 ? 0 : take_back(receives, error);
}

int post_recv(ibv_qp* shown, ibv_recv_wr* from, ibv_recv_wr** bad) {
  return post_receives(of(shown), from, bad);
}

int post_srq_recv(ibv_srq* shown, ibv_recv_wr* from, ibv_recv_wr** bad) {
  return post_receives(of(shown), from, bad);
}

// The header of a datagram, which lies before it in the memory of the receive; it may be cut by its
// pieces.
class Header {
 public:
  explicit Header(std::span<const ibv_sge> pieces) : pieces_(pieces) {
    copy([&](std::uint8_t* there, std::size_t at, std::size_t bytes) {
      std::memcpy(&bytes_[at], there, bytes);
    });
  }
  void write_back() {
    copy([&](std::uint8_t* there, std::size_t at, std::size_t bytes) {
      std::memcpy(there, &bytes_[at], bytes);
    });
  }

  bool is_ipv4() const { return bytes_[0] >> 4 != 6 && bytes_[kIpv4At] >> 4 == 4; }
  Gid source() const { return gid(kIpv4At + 12, 8); }
  Gid destination() const { return gid(kIpv4At + 16, 24); }
  void set_source(const Gid& value) { set(kIpv4At + 12, 8, value); }
  void set_destination(const Gid& value) { set(kIpv4At + 16, 24, value); }

 private:
  template <class Copy>
  void copy(const Copy& copy) {
    std::size_t at = 0;
    for (const ibv_sge& piece : pieces_) {
      const std::size_t bytes = std::min<std::size_t>(piece.length, kGrhBytes - at);
      if (bytes > 0) copy(reinterpret_cast<std::uint8_t*>(piece.addr), at, bytes);
      at += bytes;
    }
  }
  Gid gid(std::size_t ipv4_at, std::size_t grh_at) const {
    Gid made{};
    if (is_ipv4()) {
      made[10] = made[11] = 0xff;
      std::memcpy(&made[12], &bytes_[ipv4_at], 4);
    } else {
      std::memcpy(made.data(), &bytes_[grh_at], made.size());
    }
    return made;
  }
  void set(std::size_t ipv4_at, std::size_t grh_at, const Gid& value) {
    if (!is_ipv4()) {
      std::memcpy(&bytes_[grh_at], value.data(), value.size());
      return;
    }
    std::memcpy(&bytes_[ipv4_at], &value[12], 4);
    set_checksum();
  }
  void set_checksum() {
    bytes_[kIpv4At + 10] = bytes_[kIpv4At + 11] = 0;
    std::uint32_t sum = 0;
    for (std::size_t at = kIpv4At; at < kGrhBytes; at += 2) sum += bytes_[at] << 8 | bytes_[at + 1];
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    bytes_[kIpv4At + 10] = static_cast<std::uint8_t>(~sum >> 8);
    bytes_[kIpv4At + 11] = static_cast<std::uint8_t>(~sum);
  }

  std::span<const ibv_sge> pieces_;
  std::array<std::uint8_t, kGrhBytes> bytes_{};
};

// Says who sent a datagram, and to whom, in the numbers that the program knows.
DIAPAUSE_COLD void name_source(Shim& shim, std::span<const ibv_sge> pieces, ibv_wc& completion) {
  const Directory& directory = shim.directory;
  if ((completion.wc_flags & IBV_WC_GRH) == 0) {
    completion.src_qp = directory.shown_pair({false, {}, completion.slid}, completion.src_qp);
    completion.slid =
        static_cast<std::uint16_t>(directory.shown_address({false, {}, completion.slid}).lid);
    return;
  }
  Header header(pieces);
  const Address source{true, header.source(), 0}, destination{true, header.destination(), 0};
  completion.src_qp = directory.shown_pair(source, completion.src_qp);
  header.set_source(directory.shown_address(source).gid);
  header.set_destination(directory.shown_address(destination).gid);
  header.write_back();
}

// Lets a completion of a receive speak of what the program posted. Returns false if it is of before
// the queue pair was reset.
bool finish_receive(Shim& shim, QueuePair& pair, ibv_wc& completion) {
  Receives& receives = pair.where_received();
  Receives::Slot* const slot = receives.find(static_cast<std::uint32_t>(completion.wr_id));
  if (slot == nullptr) {
    completion.wr_id = 0;
    return false;
  }
  completion.wr_id = slot->id;
  if (completion.status == IBV_WC_SUCCESS) {
    ++pair.received;
    if (pair.shown.qp_type == IBV_QPT_UD && !shim.directory.is_trivial())
      name_source(shim, receives.pieces_of(*slot), completion);
  }
  receives.give_back(*slot);
  return true;
}

bool is_of_receive(QueuePair& pair, const ibv_wc& completion) {
  // In a completion that tells of an error, only the id is valid.
  if (completion.status == IBV_WC_SUCCESS) return (completion.opcode & IBV_WC_RECV) != 0;
  return pair.where_received().is_real_id(completion.wr_id);
}

// Returns false if the completion is not for the program.
bool finish(Shim& shim, CompletionQueue& queue, ibv_wc& completion, Others others) {
  QueuePair* const pair = queue.pairs.find(completion.qp_num);
  if (pair == nullptr) return false;  // it belongs to a queue pair that is gone
  completion.qp_num = pair->shown.qp_num;
  if (completion.status != IBV_WC_SUCCESS) pair->is_broken = true;
  if (is_of_receive(*pair, completion)) {
    // Other completion queues give back to a shared receive queue, too.
    if (pair->shown.srq == nullptr || others == Others::held)
      return finish_receive(shim, *pair, completion);
    Lock& lock = pair->where_received().lock;
    lock.lock_awake();
    const bool is_known = finish_receive(shim, *pair, completion);
    lock.unlock();
    return is_known;
  }
  if (pair->is_marker_on_its_way && completion.wr_id == kMarkerId) {
    pair->is_marker_on_its_way = false;
    pair->plain.sends = pair->positions.empty();
    pair->retired = pair->posted;  // nothing is posted while there is a marker
    return false;
  }
  ++pair->signalled_done;
  if (!pair->positions.empty())
    pair->retired = pair->positions[pair->signalled_done % pair->positions.size()];
  return true;
}

// Completions that were taken before a checkpoint.
DIAPAUSE_COLD int take_held(CompletionQueue& queue, int most, ibv_wc* into) {
  int count = 0;
  for (; count < most && !queue.held.empty(); ++count) {
    into[count] = queue.held.front();
    queue.held.pop_front();
  }
  queue.has_held = !queue.held.empty();
  return count;
}

// Makes `count` completions of the adapter those of the program. Returns how many are for it.
DIAPAUSE_COLD int finish_all(Shim& shim, CompletionQueue& queue, int count, ibv_wc* completions,
                             Others others) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (!finish(shim, queue, completions[i], others)) continue;
    if (kept != i) completions[kept] = completions[i];
    ++kept;
  }
  return kept;
}

// Does for one completion what finish() does, if it has to be counted only. Otherwise it returns
// false, and has done nothing.
DIAPAUSE_HOT bool count_one_finished(const CompletionQueue& queue, ibv_wc& completion) {
  const PairTable::Recent& recent = queue.pairs.recent(completion.qp_num);
  if (recent.number != completion.qp_num || completion.status != IBV_WC_SUCCESS) return false;
  QueuePair& pair = *recent.pair;
  if ((completion.opcode & IBV_WC_RECV) == 0) {
    if (!pair.plain.sends) return false;
    ++pair.signalled_done;
  } else {
    if (!pair.plain.receives) return false;
    Receives::Slot* const slot = pair.receives.find(static_cast<std::uint32_t>(completion.wr_id));
    if (slot == nullptr) return false;
    completion.wr_id = slot->id;
    pair.receives.give_back(*slot);
    ++pair.received;
  }
  completion.qp_num = recent.shown;
  return true;
}

DIAPAUSE_COLD int finish_several(CompletionQueue& queue, int count) {
  for (int i = 0; i < count; ++i) {
    if (count_one_finished(queue, queue.into[i])) continue;
    return i + finish_all(Shim::get(), queue, count - i, queue.into + i, Others::free);
  }
  return count;
}

// One completion or none is what most calls find: they save no registers for more. The caller has
// the lock.
DIAPAUSE_HOT int poll(CompletionQueue& queue, int most) {
  if (queue.has_held) return take_held(queue, most, queue.into);
  const int count = queue.poll_cq(queue.real, most, queue.into);
  if (count == 1 && count_one_finished(queue, *queue.into)) return 1;
  return count <= 0 ? count : finish_several(queue, count);
}

DIAPAUSE_COLD int poll_in_turn(CompletionQueue& queue, int most, ibv_wc* into) {
  const Holding holding(queue.lock);
  queue.into = into;
  return poll(queue, most);
}

int poll_cq(ibv_cq* shown, int most, ibv_wc* into) {
  CompletionQueue& queue = of(shown);
  if (!queue.lock.try_lock()) return poll_in_turn(queue, most, into);
  const Holding holding(queue.lock, std::adopt_lock);
  queue.into = into;
  return poll(queue, most);
}

int req_notify_cq(ibv_cq* shown, int solicited_only) {
  CompletionQueue& queue = of(shown);
  const Holding holding(queue.lock);
  queue.is_armed = true;
  queue.is_armed_for_solicited = solicited_only != 0;
  return queue.real->context->ops.req_notify_cq(queue.real, solicited_only);
}

}  // namespace

ibv_context_ops operations() {
  ibv_context_ops made{};
  made.poll_cq = poll_cq;
  made.req_notify_cq = req_notify_cq;
  made.post_send = post_send;
  made.post_recv = post_recv;
  made.post_srq_recv = post_srq_recv;
  return made;  // memory windows are none of them: the rest is null, which programs are told as
                // "not supported"
}

int post_all_or_none(QueuePair& pair, ibv_send_wr* from, std::size_t count) {
  const Holding holding(pair.lock);
  if (pair.posted - pair.retired + count > pair.init.cap.max_send_wr) return ENOMEM;
  ibv_send_wr* bad = nullptr;
  return post_list(pair, from, &bad);
}

Taken take_completions(CompletionQueue& queue, int most, ibv_wc* into, Others others) {
  const int count = queue.poll_cq(queue.real, most, into);
  return {count, finish_all(Shim::get(), queue, count, into, others)};
}

// The marker of a reliable queue pair is a write of no bytes. That of a datagram queue pair is a
// datagram to itself, with a key that it does not accept.
Status post_marker(QueuePair& pair) {
  Shim& shim = Shim::get();
  ibv_send_wr marker{};
  marker.wr_id = kMarkerId;
  marker.send_flags = IBV_SEND_SIGNALED;
  marker.opcode = IBV_WR_RDMA_WRITE;
  ibv_ah* handle = nullptr;
  if (pair.shown.qp_type == IBV_QPT_UD) {
    ibv_ah_attr own{};
    own.port_num = pair.attributes.port_num;
    Port& port = pair.context().port(own.port_num);
    own.dlid = port.real_lid;
    const auto gid =
        std::ranges::find_if(port.gids, [](const GidEntry& one) { return one.real != Gid{}; });
    if (gid != port.gids.end()) {
      own.is_global = 1;
      own.grh.dgid = to_ibv(gid->real);
      own.grh.sgid_index = static_cast<std::uint8_t>(gid->real_index);
      own.grh.hop_limit = 1;
    }
    handle = shim.real.ibv_create_ah(of(pair.shown.pd).real, &own);
    if (handle == nullptr)
      return fail(os_error("making an address handle for the last datagram", errno));
    marker.opcode = IBV_WR_SEND;
    marker.wr.ud = {handle, pair.real->qp_num, ~pair.attributes.qkey & 0x7fffffff};
  }
  ibv_send_wr* bad = nullptr;
  const int error = pair.post_send(pair.real, &marker, &bad);
  pair.marker_handle = handle;
  if (error != 0)
    return fail(
        os_error(fmt::format("posting the last send of queue pair {}", pair.shown.qp_num), error));
  pair.is_marker_on_its_way = true;
  pair.see_what_is_plain(shim.directory);
  pair.ends_silently = false;
  return {};
}

Status post_again(QueuePair& pair) {
  for (Receives::Slot* const slot : pair.receives.in_order()) {
    const int error = post_slot(pair, *slot);
    if (error != 0)
      return fail(os_error(
          fmt::format("posting receives of queue pair {} again", pair.shown.qp_num), error));
  }
  return {};
}

Status post_again(SharedQueue& queue) {
  for (Receives::Slot* const slot : queue.receives.in_order()) {
    const int error = post_slot(queue, *slot);
    if (error != 0) return fail(os_error("posting receives of a shared queue again", error));
  }
  return {};
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

// Headers that the program has seen hold addresses as it knows them, and the library compares them
// with the adapter's.
DIAPAUSE_VERB int ibv_init_ah_from_wc(ibv_context* shown, std::uint8_t port, ibv_wc* completion,
                                      ibv_grh* header, ibv_ah_attr* attributes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown))
    return shim.real.ibv_init_ah_from_wc(shown, port, completion, header, attributes);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  ibv_grh copy{};
  ibv_wc real = *completion;
  real.slid = static_cast<std::uint16_t>(
      shim.directory.real_address({false, {}, completion->slid}, 0, 0).lid);
  if (header != nullptr) {
    copy = *header;
    const ibv_sge piece{reinterpret_cast<std::uintptr_t>(&copy), sizeof copy, 0};
    Header of_datagram(std::span(&piece, 1));
    const auto address = [&](const Gid& gid) {
      return shim.directory.real_address({true, gid, 0}, 0, 0).gid;
    };
    of_datagram.set_source(address(of_datagram.source()));
    of_datagram.set_destination(context.real_of_own(port, of_datagram.destination()));
    of_datagram.write_back();
  }
  const int error = shim.real.ibv_init_ah_from_wc(context.real, port, &real,
                                                  header == nullptr ? nullptr : &copy, attributes);
  if (error != 0) return error;
  if (attributes->is_global != 0) {
    attributes->grh.dgid = to_ibv(shim.directory.shown_address(address_of(*attributes)).gid);
    attributes->grh.sgid_index = context.shown_index(port, attributes->grh.sgid_index);
  }
  if (attributes->dlid != 0) {
    attributes->dlid =
        static_cast<std::uint16_t>(shim.directory.shown_address({false, {}, attributes->dlid}).lid);
  }
  return 0;
}

DIAPAUSE_VERB ibv_ah* ibv_create_ah_from_wc(ibv_pd* domain, ibv_wc* completion, ibv_grh* header,
                                            std::uint8_t port) {
  Shim& shim = Shim::get();
  if (!is_ours(domain->context))
    return shim.real.ibv_create_ah_from_wc(domain, completion, header, port);
  ibv_ah_attr attributes{};
  if (ibv_init_ah_from_wc(domain->context, port, completion, header, &attributes) != 0)
    return nullptr;
  return ibv_create_ah(domain, &attributes);
}
