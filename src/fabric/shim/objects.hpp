// Programs hold these objects in place of those of libibverbs. Each begins with what the program
// sees, keeps how it was made, and leads to the object of the adapter, which comes and goes with
// checkpoints.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/directory.hpp"
#include "fabric/shim/gate.hpp"
#include "fabric/shim/real.hpp"

namespace diapause::fabric {

// Stays for as long as the process lives.
struct Device {
  // Libraries of manufacturers look behind it for their mark: there is none.
  struct {
    ibv_device device;
    char no_mark[256];
  } shown = {};
  std::string real_name;  // the adapter that stands for it now
  __be64 guid = 0;
};

struct GidEntry {
  Gid shown{};
  std::uint32_t type = 0;  // as in ibv_gid_type_sysfs, or as ibv_query_gid_type() returns it
  std::uint32_t real_index = 0;
  Gid real{};
};

struct Port {
  std::uint16_t shown_lid = 0, real_lid = 0;
  std::vector<GidEntry> gids;  // by the index that the program knows
};

struct Context {
  verbs_context shown = {};
  Device* device = nullptr;
  ibv_context* real = nullptr;
  std::uint64_t home = 0;
  std::vector<Port> ports;  // port 1 and so on
  Numbers local_keys;       // made with the directory, and not changed while threads run
  Lock lock;                // protects the events
  std::deque<ibv_async_event> held_events;
  int bell = -1;  // readable while there are events that are held

  ibv_context* face() { return &shown.context; }
  Port& port(std::uint32_t number) { return ports[number - 1]; }
  bool has_port(std::uint32_t number) const { return number >= 1 && number <= ports.size(); }
  Gid real_of_own(std::uint32_t number, const Gid& shown_gid);
  std::uint8_t shown_index(std::uint32_t number, std::uint8_t real_index);
};

struct Domain {
  ibv_pd shown = {};
  ibv_pd* real = nullptr;
};

struct Region {
  ibv_mr shown = {};
  ibv_mr* real = nullptr;
  std::uint64_t iova = 0;
  unsigned access = 0;
};

struct CompletionQueue;
struct QueuePair;

// Its descriptor is an epoll set of the real channel and a bell. Programs wait for it as for the
// real one, and it stays.
struct Channel {
  ibv_comp_channel shown = {};
  ibv_comp_channel* real = nullptr;
  // Calls for events wait here, without the lock and outside the gate, as long as the adapter is
  // open. Its descriptor is attached to the real channel, or, while there is none or events are
  // held, to a file at whose end every read fails with EIO. Such a call enters the gate and looks
  // again.
  ibv_comp_channel reading = {};
  std::atomic<std::uint32_t> attachments{0};  // how often it was attached
  std::atomic<bool> is_waiting{true};         // false: O_NONBLOCK
  int bell = -1;
  Lock lock;
  // Events that were taken from the real channel before a checkpoint.
  std::deque<CompletionQueue*> held;
};

// Queue pairs by their real numbers. Every completion is looked up in it, so those that were found
// lately come first.
class PairTable {
 public:
  struct Recent {
    std::uint32_t number = ~0U;  // which no queue pair has
    std::uint32_t shown = 0;
    QueuePair* pair = nullptr;
  };
  // Where a queue pair is, if it was found lately.
  const Recent& recent(std::uint32_t number) const { return recent_[number % recent_.size()]; }
  void add(std::uint32_t number, QueuePair* pair) {
    all_[number] = pair;
    recent_ = {};
  }
  void remove(std::uint32_t number) {
    all_.erase(number);
    recent_ = {};
  }
  void clear() {
    all_.clear();
    recent_ = {};
  }
  // Returns null if there is none.
  QueuePair* find(std::uint32_t number) {
    return recent(number).number == number ? recent(number).pair : search(number);
  }

 private:
  QueuePair* search(std::uint32_t number);

  std::array<Recent, 16> recent_;
  std::unordered_map<std::uint32_t, QueuePair*> all_;
};

struct CompletionQueue {
  union {  // one begins as the other
    ibv_cq_ex extended = {};
    ibv_cq shown;
  };
  ibv_cq* real = nullptr;
  decltype(ibv_context_ops::poll_cq) poll_cq = nullptr;  // of the adapter
  Channel* channel = nullptr;
  int vector = 0;
  Lock lock;
  std::deque<ibv_wc> held;  // completions that were taken before a checkpoint; they come first
  bool has_held = false;    // there are some
  ibv_wc* into = nullptr;   // where whoever has the lock wants them
  // Tells whether the program has ever asked for an event, and how it asked last. One event too
  // many does no harm, one too few does.
  bool is_armed = false, is_armed_for_solicited = false;
  bool has_missed_event = false;  // while it was armed, completions were taken
  std::atomic<std::uint32_t> events_given{0};
  PairTable pairs;  // those whose work completes here
  // A thread holds `reading` from ibv_start_poll() to ibv_end_poll(), and reads `read` meanwhile. A
  // checkpoint does not take it.
  Lock reading;
  ibv_wc read = {};
};

// Receives that were posted and have not completed. One thread at a time may post, and one may
// give back, at the same time.
class Receives {
 public:
  // `most`: how many there can be, and how many pieces of memory each can have.
  void prepare(std::uint32_t most, std::uint32_t most_pieces);

  // Adapters get the receives that are in here, which stay where they are.
  struct alignas(64) Slot {
    ibv_recv_wr real = {};           // but the keys of its pieces are the program's
    std::uint64_t id = 0;            // the number that the program knows
    std::uint64_t order = 0;         // 0: free
    std::atomic<Slot*> next_free{};  // null: there is none behind it
  };
  bool can_be(const ibv_recv_wr& posted) const {
    return static_cast<std::uint32_t>(posted.num_sge) <= most_pieces_;
  }
  // Returns the slot that now holds one that can be, or null if there is no room.
  Slot* take(const ibv_recv_wr& posted) {
    Slot* const slot = take_slot(posted);
    if (slot == nullptr) return nullptr;
    std::copy_n(posted.sg_list, posted.num_sge, slot->real.sg_list);
    slot->real.num_sge = posted.num_sge;
    return slot;
  }
  // Does so with one of one piece of memory.
  Slot* take_one(const ibv_recv_wr& posted) {
    Slot* const slot = take_slot(posted);
    if (slot == nullptr) return nullptr;
    *slot->real.sg_list = *posted.sg_list;
    slot->real.num_sge = 1;
    return slot;
  }
  // Undoes the last take, of this slot.
  void undo_take(Slot& slot) {
    slot.order = 0;
    first_free_ = &slot;
  }
  void give_back(Slot& slot) {
    slot.order = 0;
    slot.next_free.store(nullptr, std::memory_order_relaxed);
    last_free_->next_free.store(&slot, std::memory_order_release);
    last_free_ = &slot;
  }
  void forget_all();
  // Returns a slot by the lower half of the number that the adapter knows, or null if it is free.
  Slot* find(std::uint32_t index) {
    return index < count_ && slots_[index].order != 0 ? &slots_[index] : nullptr;
  }
  // Tells whether a number is one that an adapter got for a receive.
  bool is_real_id(std::uint64_t id) {
    return (id & ~std::uint64_t{0xffffffff}) == mark_ &&
           find(static_cast<std::uint32_t>(id)) != nullptr;
  }
  std::vector<Slot*> in_order();
  std::span<ibv_sge> pieces_of(const Slot& slot) const {
    return {slot.real.sg_list, static_cast<std::size_t>(slot.real.num_sge)};
  }

  // Adapters get the keys of programs if the programs' are those of the adapters. The caller has
  // the lock, or the program does not have the queue yet.
  void see_what_is_plain(const Numbers& keys) { is_plain_ = keys.is_empty() && most_pieces_ > 0; }
  // Tells whether one with one piece of memory can be passed on as it is. The caller has the lock.
  bool is_plain() const { return is_plain_; }

  // What is being posted, where it is now, and where the program is told that it could not be.
  struct {
    ibv_recv_wr* one = nullptr;
    Slot* slot = nullptr;
    ibv_recv_wr** bad = nullptr;
  } posting;
  Lock lock;  // of who posts. If several queues complete these receives, it is also of who gives
              // back

 private:
  Slot* take_slot(const ibv_recv_wr& posted) {
    Slot* const slot = first_free_;
    Slot* const next = slot->next_free.load(std::memory_order_acquire);
    if (next == nullptr) return nullptr;
    first_free_ = next;
    slot->order = ++taken_;
    slot->id = posted.wr_id;
    return slot;
  }

  bool is_plain_ = false;
  std::uint32_t count_ = 0, most_pieces_ = 0;
  std::vector<Slot> slots_;
  std::vector<ibv_sge> pieces_;
  // Free slots are a list: who posts takes the first ones, and who gives back adds behind the last,
  // which is never taken. So they do not meet.
  Slot* first_free_ = nullptr;
  Slot* last_free_ = nullptr;
  std::uint64_t taken_ = 0;
  std::uint64_t mark_ = 0;  // what the numbers of all receives begin with
};

struct SharedQueue {
  ibv_srq shown = {};
  ibv_srq* real = nullptr;
  ibv_srq_attr attributes = {};
  Receives receives;
};

// Sends that a program describes one after another between ibv_wr_start() and ibv_wr_complete().
// They hold the numbers that the program knows, so a checkpoint may come in between.
struct Batch {
  Lock lock;  // of the thread that is in between; a checkpoint does not take it
  std::vector<ibv_send_wr> requests;
  std::vector<std::size_t> first_pieces;  // of each request
  std::vector<ibv_sge> pieces;
  std::vector<char> inlined;  // data that goes in the requests themselves
  int error = 0;
  ibv_send_wr nothing = {};  // what is set while there is no request
};

struct QueuePair {
  union {  // one begins with the other
    ibv_qp_ex extended = {};
    ibv_qp shown;
  };
  ibv_qp* real = nullptr;
  decltype(ibv_context_ops::post_send) post_send = nullptr;  // of the adapter
  decltype(ibv_context_ops::post_recv) post_recv = nullptr;
  ibv_qp_init_attr init = {};   // what the program asked for
  ibv_qp_attr attributes = {};  // the attributes that the program has set, one call after another
  int known = 0;                // a mask of those attributes
  ibv_qp_state state = IBV_QPS_RESET;
  std::vector<std::pair<ibv_gid, std::uint16_t>> groups;  // the multicast groups
  Lock lock;                                              // for posting sends
  Receives receives;

  // Counters, since it was reset. Those of sends are of whoever has `lock`, those of completions of
  // whoever has the lock of the completion queue.
  std::uint64_t signalled = 0;       // sends that will tell of their completion
  std::uint64_t signalled_done = 0;  // those of them that have told
  bool ends_silently = false;        // there may be sends behind the last of these
  std::uint64_t sent = 0;            // messages that take a receive, if it is connected
  std::uint64_t received = 0;        // receives that have completed
  bool is_broken = false;
  bool is_marker_on_its_way = false;
  ibv_ah* marker_handle = nullptr;

  std::unique_ptr<Batch> batch;  // null: it was not made for ibv_wr_*
  // A batch is posted as a whole or not at all, so it must be known how much room there is. These
  // say for each signalled send how many sends there were up to it; empty if there are no batches.
  std::vector<std::uint64_t> positions;
  std::uint64_t posted = 0;               // sends, if there are batches
  std::atomic<std::uint64_t> retired{0};  // those that are known to be over

  // The send that is being posted, and where the program is told that it could not be.
  struct {
    ibv_send_wr* one = nullptr;
    ibv_send_wr** bad = nullptr;
  } posting;
  ibv_send_wr datagram = {};  // as the adapter gets it

  // How much has to be done to post a message, and whether those that complete are only counted.
  // The caller of see_what_is_plain() has all locks, or the program does not have the queue pair
  // yet.
  enum class Posts : std::uint8_t { translated, untouched, datagrams };
  struct {
    Posts posts = Posts::translated;
    bool sends = false, receives = false;
  } plain;
  void see_what_is_plain(const Directory& directory);

  std::uint64_t peer_home = 0;
  Context& context() const {
    return *reinterpret_cast<Context*>(reinterpret_cast<char*>(shown.context) -
                                       offsetof(verbs_context, context));
  }
  // Returns where its receives are posted.
  Receives& where_received() {
    return shown.srq == nullptr ? receives : reinterpret_cast<SharedQueue*>(shown.srq)->receives;
  }
};

inline QueuePair* PairTable::search(std::uint32_t number) {
  const auto found = all_.find(number);
  if (found == all_.end()) return nullptr;
  recent_[number % recent_.size()] = {number, found->second->shown.qp_num, found->second};
  return found->second;
}

struct Handle {
  ibv_ah shown = {};
  ibv_ah* real = nullptr;
  ibv_ah_attr attributes = {};
  Address address;
  // The last number that was asked for: as the program knows it, and the real one in the upper
  // half.
  std::atomic<std::uint64_t> last{0};
};

}  // namespace diapause::fabric
