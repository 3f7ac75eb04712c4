// All that this library has in one process.
#pragma once

#include <mutex>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "fabric/control.hpp"
#include "fabric/directory.hpp"
#include "fabric/shim/gate.hpp"
#include "fabric/shim/objects.hpp"
#include "fabric/shim/real.hpp"

// A function that takes the place of one of libibverbs.
#define DIAPAUSE_VERB extern "C" __attribute__((visibility("default")))

namespace diapause::fabric {

template <class Object>
class Set {
 public:
  void add(Object* one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(one);
  }
  void remove(Object* one) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, one);
  }
  void forget_all() { all_.clear(); }
  // Returns the objects in the order in which they were made. The gate must be closed.
  const std::vector<Object*>& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<Object*> all_;
};

class Shim {
 public:
  // Made at the first call, and never destroyed: the program may use verbs while it ends.
  [[gnu::always_inline]] static Shim& get() {
    static Shim* const shim = new Shim;
    return *shim;
  }

  const Real real = Real::find();
  const int nothing;  // a file with nothing in it
  Gate gate;
  Directory directory;             // changes only while threads are stopped
  std::uint32_t receive_mark = 0;  // upper half of the ids of receives, as adapters know them

  std::mutex listing;  // for threads that add devices
  Set<Device> devices;
  Set<Context> contexts;
  Set<Domain> domains;
  Set<Region> regions;
  Set<Channel> channels;
  Set<CompletionQueue> queues;
  Set<SharedQueue> shared_queues;
  Set<QueuePair> pairs;
  Set<Handle> handles;

  // From the first device on, the agent can ask a thread for what follows. Does nothing if that is
  // so.
  Status begin_to_listen();

  // These are the steps of control.hpp. Only that thread may call them.
  Status stop();
  Status drain();
  Status close();
  Status open();
  Status connect();
  void go_on();

 private:
  Shim();
  void forget_all();
  static void forget_in_child();
  void learn();
  static void* listen(void* shim);
  [[noreturn]] static void listen_again();
  void tell_where_to_begin(std::uint64_t stack);
  [[noreturn]] void serve();
  void perform(std::uint32_t request);
  Status perform(Step step);
  Status publish();
  Status read_directory(std::vector<Record>& records) const;

  void hold_all_locks();
  void release_all_locks();

  std::mutex listening_;
  Page* page_ = nullptr;
  int memory_ = -1;
};

// The object behind what a program holds.
Context& of(ibv_context* shown);
inline Domain& of(ibv_pd* shown) { return *reinterpret_cast<Domain*>(shown); }
inline Region& of(ibv_mr* shown) { return *reinterpret_cast<Region*>(shown); }
inline Channel& of(ibv_comp_channel* shown) { return *reinterpret_cast<Channel*>(shown); }
inline CompletionQueue& of(ibv_cq* shown) { return *reinterpret_cast<CompletionQueue*>(shown); }
inline CompletionQueue& of(ibv_cq_ex* shown) { return of(ibv_cq_ex_to_cq(shown)); }
inline SharedQueue& of(ibv_srq* shown) { return *reinterpret_cast<SharedQueue*>(shown); }
inline QueuePair& of(ibv_qp* shown) { return *reinterpret_cast<QueuePair*>(shown); }
inline QueuePair& of(ibv_qp_ex* shown) { return of(&shown->qp_base); }
inline Handle& of(ibv_ah* shown) { return *reinterpret_cast<Handle*>(shown); }

// The libraries of adapters, and the real library itself, call the same functions with objects of
// their own.
bool is_ours(const ibv_context* context);

// traffic.cpp: what programs call through the table in a context.
ibv_context_ops operations();
// Takes up to `most` completions of the adapter, as the program will see them. The caller has the
// queue's lock; `are_others_held`: those of all receives, too.
enum class Others { free, held };
struct Taken {
  int from_adapter = 0;  // negative if it failed
  int for_program = 0;
};
Taken take_completions(CompletionQueue& queue, int most, ibv_wc* into, Others others);
// Posts a list of so many sends as a whole, or fails with an error number and posts none of them.
int post_all_or_none(QueuePair& pair, ibv_send_wr* from, std::size_t count);
// Posts a send that says when all before it are done. The caller has all locks.
Status post_marker(QueuePair& pair);
// Gives the adapter the receives that it had. The caller has all locks.
Status post_again(QueuePair& pair);
Status post_again(SharedQueue& queue);

// extended.cpp: what programs call through the other table in a context.
ibv_qp* create_extended_pair(ibv_context* shown, ibv_qp_init_attr_ex* init);
ibv_cq_ex* create_extended_queue(ibv_context* shown, ibv_cq_init_attr_ex* init);

// devices.cpp
Status open_real(Shim& shim, Context& context);
void close_real(Shim& shim, Context& context);
Status look_at_ports(Shim& shim, Context& context);
Gid to_gid(const ibv_gid& gid);
ibv_gid to_ibv(const Gid& gid);
// The address that an attribute of a program leads to, as it knows it.
Address address_of(const ibv_ah_attr& attributes);
// Returns the same attribute for the adapter. `home` and `port` say whose address it is, if that is
// known.
ibv_ah_attr real_attributes(Shim& shim, Context& context, const ibv_ah_attr& shown,
                            std::uint64_t home, std::uint32_t port);

// events.cpp
Status open_real(Shim& shim, Channel& channel);
void take_events(Shim& shim, Channel& channel);
// The caller has the lock of the channel.
void forget_events(Channel& channel, const CompletionQueue& queue);
void take_events(Shim& shim, Context& context);
void ring(int bell);
int watched(int descriptor, int bell);

// queues.cpp, pairs.cpp, memory.cpp: the real objects of those that the program holds.
Status open_real(Shim& shim, CompletionQueue& queue);
Status open_real(Shim& shim, Region& region);
Status open_real(Shim& shim, SharedQueue& queue);
Status open_real(Shim& shim, QueuePair& pair);
Status connect_real(Shim& shim, QueuePair& pair);
Status open_real(Shim& shim, Handle& handle);

}  // namespace diapause::fabric
