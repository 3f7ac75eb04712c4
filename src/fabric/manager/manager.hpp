// The connection manager that programs find in place of librdmacm. All its state is memory, epoll
// sets and TCP sockets of the program, which a checkpoint saves anyway, and queue pairs of
// libibverbs, which the shim saves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fabric/connection_message.hpp"
#include "fabric/manager/interface.hpp"

// A function that takes the place of one of librdmacm.
#define DIAPAUSE_RDMA extern "C" __attribute__((visibility("default")))

namespace diapause::fabric {

struct Identifier;

// Where an address is: a port of an adapter.
struct Place {
  ibv_context* verbs = nullptr;
  ibv_pd* domain = nullptr;
  std::uint8_t port = 0, gid_index = 0;
  std::uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  bool is_ethernet = true;
  ibv_gid gid = {};
};

// The program has it from rdma_get_cm_event() to rdma_ack_cm_event().
struct Event {
  CmEvent shown = {};
  Identifier* counted_by = nullptr;  // cannot be destroyed before the event is acknowledged
  std::vector<std::uint8_t> data;
};

// Its descriptor is an epoll set, which holds a bell that rings while there are events, and the
// sockets of the channel's identifiers.
struct ManagedChannel {
  EventChannel shown = {-1};
  int bell = -1;
  std::deque<std::unique_ptr<Event>> events;
};

enum class Phase {
  idle,        // or bound, or resolved
  listening,   //
  arriving,    // accepted at the socket, without a request yet; the program does not know it
  requested,   // the program has the request, and is to answer
  accepted,    // it has accepted, and the other end is not ready yet
  connecting,  // the socket waits for its connection
  greeting,    // and then for the first message of the other end
  requesting,  // the request is on its way
  answered,    // a reply came, and the program is to establish the connection
  established,
  over,
};

struct Identifier {
  CmId shown = {};
  ManagedChannel* channel = nullptr;
  bool is_waiting = false;  // calls wait until they are done; the channel is its own
  Phase phase = Phase::idle;
  int socket = -1, timer = -1;
  std::vector<std::uint8_t> received;
  Identifier* listener = nullptr;
  std::vector<Identifier*> arriving;  // at this one, which listens
  Place place;
  bool is_resolved = false, is_active = false;  // active: it asked for the connection
  std::uint8_t service_type = 0, ack_timeout = 0;
  ConnectionMessage own, other;  // the request and the reply
  bool was_disconnected = false;
  ibv_sa_path_rec path = {};

  // What rdma_create_ep() was told for rdma_get_request() and rdma_connect().
  std::optional<ibv_qp_init_attr> pair_for_requests;
  std::vector<std::uint8_t> data_for_connect;

  std::uint32_t events_given = 0, events_acknowledged = 0;
  bool is_datagram() const { return shown.pair_kind == IBV_QPT_UD; }
};

// Everything that follows needs this lock to be held, but for what waits.
struct Manager {
  static Manager& get();
  std::mutex mutex;
  std::condition_variable acknowledged;
};

inline Identifier& of(CmId* shown) { return *reinterpret_cast<Identifier*>(shown); }
inline ManagedChannel& of(EventChannel* shown) { return *reinterpret_cast<ManagedChannel*>(shown); }

// Returns -1 with this error for the program, or 0 without one.
int answer(int error);

// channels.cpp
void watch(Identifier& id, int descriptor, std::uint32_t events);
void unwatch(const Identifier& id, int descriptor);
Event& add_event(Identifier& id, EventKind kind, int status = 0);
void add_event(Identifier& id, EventKind kind, int status, const ConnectionMessage& other);
ManagedChannel* make_channel();  // null, with errno, if there is none
void destroy_channel(ManagedChannel* channel);
void move_to(Identifier& id, ManagedChannel& channel);
// Waits for the next event of an identifier whose calls wait. Without the lock.
int complete(Identifier& id);

// connections.cpp
std::unique_ptr<Identifier> make_identifier(ManagedChannel& channel, int space, ibv_qp_type kind);
// Looks at its socket, and does what can be done now.
void advance(Identifier& id);
void close_connection(Identifier& id);

// places.cpp
std::optional<Place> find_place(const AnyAddress& address);
// Returns the first one in use, for programs that address the machine itself. If `gid` is not
// zero, one that has it comes first.
std::optional<Place> any_place(const Gid& gid);
void put(Identifier& id, const Place& place);
// Finds the address from which the other is reached. Returns an error.
int find_source(const AnyAddress& destination, AnyAddress& source);
socklen_t length_of(const AnyAddress& address);
bool is_any(const AnyAddress& address);
// Returns whether the address is none of an adapter: any, or that of this machine within itself.
bool is_within_machine(const AnyAddress& address);
std::uint16_t port_of(const AnyAddress& address);
void set_port(AnyAddress& address, std::uint16_t port);
Endpoint endpoint_of(const AnyAddress& address);
AnyAddress address_of(const Endpoint& endpoint);
ibv_gid gid_of(const AnyAddress& address);

// pairs.cpp: the queue pairs of identifiers. These return error numbers.
int attributes_for(const Identifier& id, ibv_qp_attr& attributes, int& mask);
int move_pair(Identifier& id, ibv_qp_state state);
// Lets it receive, and then send.
int let_pair_communicate(Identifier& id);
int create_pair(Identifier& id, ibv_pd* domain, ibv_qp_init_attr& init);
void destroy_pair(Identifier& id);
ibv_ah_attr address_of_other(const Identifier& id);

}  // namespace diapause::fabric
