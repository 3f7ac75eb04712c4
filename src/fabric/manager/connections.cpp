// How connections are made and end. Each is a TCP connection between the two ends, which stays as
// long as the queue pairs are connected.
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "fabric/manager/manager.hpp"

namespace diapause::fabric {
namespace {

constexpr int kMostBacklog = 1024;
constexpr std::size_t kMostArriving = 256;
constexpr time_t kGreeting_s = 120;     // the other end may be a busy program
constexpr time_t kPacketsLinger_s = 2;  // packets of a connection that is over
constexpr std::size_t kPiece = 1024, kMostReceived = 4096;
constexpr std::uint32_t kNoSuchService = 8, kByConsumer = 28;  // reasons of rejects, by InfiniBand
constexpr int kPortTries = 200;
constexpr std::uint32_t kFirstFreePort = 32'768, kFreePorts = 28'232;

std::uint32_t draw() {
  std::uint32_t drawn = 0;
  (void)!::getrandom(&drawn, sizeof drawn, 0);
  return drawn;
}

void drop_timer(Identifier& id) {
  if (id.timer >= 0) ::close(std::exchange(id.timer, -1));
}

void start_timer(Identifier& id, time_t seconds) {
  drop_timer(id);
  id.timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  itimerspec when{};
  when.it_value.tv_sec = seconds;
  if (id.timer < 0) return;
  ::timerfd_settime(id.timer, 0, &when, nullptr);
  watch(id, id.timer, EPOLLIN);
}

bool send_message(const Identifier& id, const ConnectionMessage& message) {
  const std::vector<std::uint8_t> bytes = encode(message);
  return ::send(id.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

ConnectionMessage plain_message(MessageKind kind, std::uint32_t status = 0) {
  ConnectionMessage message;
  message.kind = kind;
  message.status = status;
  return message;
}

void end(Identifier& id, EventKind kind, int status, const ConnectionMessage& other = {}) {
  close_connection(id);
  id.phase = Phase::over;
  add_event(id, kind, status, other);
}

void disconnected(Identifier& id) {
  close_connection(id);
  id.phase = Phase::over;
  if (std::exchange(id.was_disconnected, true)) return;
  add_event(id, EventKind::disconnected);
}

void reject(Identifier& id, std::uint32_t status, std::vector<std::uint8_t> data = {}) {
  ConnectionMessage message = plain_message(MessageKind::reject, status);
  message.data = std::move(data);
  (void)send_message(id, message);
  close_connection(id);
  id.phase = Phase::over;
}

// ---- the end that listens

void forget_arriving(Identifier* one) {
  std::erase(one->listener->arriving, one);
  close_connection(*one);
  delete one;
}

void take_connection(Identifier& listener) {
  const int socket = ::accept4(listener.socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  if (listener.arriving.size() >= kMostArriving) forget_arriving(listener.arriving.front());
  auto id = make_identifier(*listener.channel, listener.shown.space, listener.shown.pair_kind);
  id->socket = socket;
  id->phase = Phase::arriving;
  id->listener = &listener;
  id->shown.context = listener.shown.context;
  constexpr int kOn = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  ConnectionMessage hello = plain_message(MessageKind::hello);
  hello.space = static_cast<std::uint32_t>(listener.shown.space);
  hello.port = port_of(listener.shown.route.source);
  if (!send_message(*id, hello)) return close_connection(*id);
  watch(*id, socket, EPOLLIN);
  listener.arriving.push_back(id.release());
}

// Finds where a connection has arrived, by the address that the other end has named, if that leads
// to an adapter.
std::optional<Place> place_for(const Identifier& id, const AnyAddress& named) {
  if (is_within_machine(named)) return any_place(id.other.gid);
  if (auto place = find_place(named)) return place;
  AnyAddress own{};
  socklen_t length = sizeof own;
  if (::getsockname(id.socket, &own.any, &length) == 0 && !is_within_machine(own)) {
    if (auto place = find_place(own)) return place;
  }
  return any_place(id.other.gid);
}

std::uint8_t at_most(std::uint8_t value, int most) {
  return static_cast<std::uint8_t>(std::min<int>(value, std::clamp(most, 0, kMostThereAre - 1)));
}

void bound_resources(Identifier& id, std::uint8_t responder, std::uint8_t initiator) {
  ibv_device_attr device{};
  if (::ibv_query_device(id.shown.verbs, &device) != 0) return;
  id.own.responder_resources = at_most(responder, device.max_qp_rd_atom);
  id.own.initiator_depth = at_most(initiator, device.max_qp_init_rd_atom);
}

void describe_own_end(Identifier& id, MessageKind kind) {
  id.own.kind = kind;
  id.own.pair_kind = static_cast<std::uint8_t>(id.shown.pair_kind);
  id.own.first_packet = draw() & 0xffffff;
  id.own.mtu = static_cast<std::uint8_t>(id.place.mtu);
  id.own.lid = id.place.lid;
  std::copy_n(id.place.gid.raw, id.own.gid.size(), id.own.gid.begin());
  id.own.pair_key = id.is_datagram() ? kDatagramKey : 0;
}

void take_request(Identifier& id, const ConnectionMessage& request) {
  Identifier& listener = *id.listener;
  const AnyAddress named = address_of(request.to);
  id.other = request;
  const auto place = place_for(id, named);
  const bool is_same_kind = (request.pair_kind == IBV_QPT_UD) == id.is_datagram();
  if (!place || !is_same_kind) {
    reject(id, kNoSuchService);
    return forget_arriving(&id);
  }
  std::erase(listener.arriving, &id);
  put(id, *place);
  id.shown.route.source = named;
  id.shown.route.destination = address_of(request.from);
  std::copy(request.gid.begin(), request.gid.end(), id.shown.route.destination_gid.raw);
  describe_own_end(id, MessageKind::reply);
  bound_resources(id, request.initiator_depth, request.responder_resources);
  id.phase = Phase::requested;
  id.is_resolved = true;
  add_event(id, EventKind::connect_request, 0, request);
  if (!listener.is_waiting) return;
  ManagedChannel* const own = make_channel();
  if (own == nullptr) return;
  move_to(id, *own);
  id.is_waiting = true;
}

// ---- the end that connects

void take_hello(Identifier& id, const ConnectionMessage& hello) {
  drop_timer(id);
  const bool is_it = hello.kind == MessageKind::hello &&
                     hello.space == static_cast<std::uint32_t>(id.shown.space) &&
                     hello.port == port_of(id.shown.route.destination);
  if (!is_it) return end(id, EventKind::rejected, kNoSuchService);
  id.phase = Phase::requesting;
  if (!send_message(id, id.own)) end(id, EventKind::unreachable, -ECONNRESET);
}

void take_reply(Identifier& id, const ConnectionMessage& reply) {
  id.other = reply;
  std::copy(reply.gid.begin(), reply.gid.end(), id.shown.route.destination_gid.raw);
  if (id.is_datagram()) {
    close_connection(id);
    id.phase = Phase::established;
    return add_event(id, EventKind::established, 0, reply);
  }
  id.phase = Phase::answered;
  if (id.shown.pair == nullptr) return add_event(id, EventKind::connect_response, 0, reply);
  int error = let_pair_communicate(id);
  if (error == 0 && !send_message(id, plain_message(MessageKind::ready))) error = ECONNRESET;
  if (error == 0) {
    id.phase = Phase::established;
    return add_event(id, EventKind::established, 0, reply);
  }
  reject(id, kByConsumer);
  add_event(id, EventKind::connect_error, -error);
}

// Begins to connect. What fails at once is told by an event, too.
void connect_socket(Identifier& id) {
  AnyAddress to = id.shown.route.destination;
  set_port(to, tcp_port_of(static_cast<std::uint32_t>(id.shown.space), port_of(to)));
  if (is_any(to)) {
    to.any.sa_family == AF_INET ? void(to.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK))
                                : void(to.six.sin6_addr = in6addr_loopback);
  }
  close_connection(id);
  id.socket = ::socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (id.socket < 0) return end(id, EventKind::unreachable, -errno);
  constexpr int kOn = 1;
  ::setsockopt(id.socket, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  const bool is_done = ::connect(id.socket, &to.any, length_of(to)) == 0;
  if (!is_done && errno == ECONNREFUSED) return end(id, EventKind::rejected, kNoSuchService);
  if (!is_done && errno != EINPROGRESS) return end(id, EventKind::unreachable, -errno);
  id.phase = Phase::connecting;
  watch(id, id.socket, EPOLLIN | EPOLLOUT);
  start_timer(id, kGreeting_s);
}

// Returns whether the socket has its connection.
bool finish_connect(Identifier& id) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(id.socket, SOL_SOCKET, SO_ERROR, &error, &length);
  pollfd one{id.socket, POLLOUT, 0};
  if (error == ECONNREFUSED) end(id, EventKind::rejected, kNoSuchService);
  if (error != 0 && error != ECONNREFUSED) end(id, EventKind::unreachable, -error);
  if (error != 0 || ::poll(&one, 1, 0) <= 0) return false;
  id.phase = Phase::greeting;
  watch(id, id.socket, EPOLLIN);
  return true;
}

// ---- both

void take(Identifier& id, const ConnectionMessage& message) {
  switch (id.phase) {
    case Phase::greeting:
      return take_hello(id, message);
    case Phase::arriving:
      if (message.kind == MessageKind::request) return take_request(id, message);
      return forget_arriving(&id);
    case Phase::requesting:
      if (message.kind == MessageKind::reply) return take_reply(id, message);
      if (message.kind == MessageKind::reject)
        return end(id, EventKind::rejected, static_cast<int>(message.status), message);
      return end(id, EventKind::rejected, kNoSuchService);
    case Phase::accepted:
      if (message.kind == MessageKind::ready) {
        id.phase = Phase::established;
        return add_event(id, EventKind::established, 0, plain_message(MessageKind::ready));
      }
      if (message.kind == MessageKind::reject)
        return end(id, EventKind::rejected, static_cast<int>(message.status), message);
      return disconnected(id);
    case Phase::answered:
    case Phase::established:
      return disconnected(id);
    default:
      return;
  }
}

// The other end has closed the connection, or was ended, or is none of ours.
void lose(Identifier& id) {
  switch (id.phase) {
    case Phase::arriving:
      return forget_arriving(&id);
    case Phase::greeting:
      return end(id, EventKind::unreachable, -ECONNRESET);
    case Phase::requesting:
      return end(id, EventKind::rejected, kByConsumer);
    case Phase::requested:
      close_connection(id);
      id.phase = Phase::over;
      return;
    case Phase::accepted:
      if (id.is_datagram()) return close_connection(id);
      return end(id, EventKind::unreachable, -ECONNRESET);
    case Phase::answered:
    case Phase::established:
      return disconnected(id);
    default:
      return close_connection(id);
  }
}

// Reads what has come. Returns false at the end of the connection.
bool read_socket(Identifier& id) {
  std::array<std::uint8_t, kPiece> piece;
  const ssize_t count = ::recv(id.socket, piece.data(), piece.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count > 0) id.received.insert(id.received.end(), piece.begin(), piece.begin() + count);
  return count > 0;
}

int bind_socket(Identifier& id) {
  AnyAddress& source = id.shown.route.source;
  const bool is_given = port_of(source) != 0;
  int error = EADDRINUSE;
  for (int tries = 0; error == EADDRINUSE && tries < (is_given ? 1 : kPortTries); ++tries) {
    if (id.socket >= 0) ::close(id.socket);
    id.socket = ::socket(source.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (id.socket < 0) return errno;
    constexpr int kOn = 1;
    ::setsockopt(id.socket, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
    if (!is_given)
      set_port(source, static_cast<std::uint16_t>(kFirstFreePort + draw() % kFreePorts));
    AnyAddress own = source;
    set_port(own, tcp_port_of(static_cast<std::uint32_t>(id.shown.space), port_of(source)));
    error = ::bind(id.socket, &own.any, length_of(own)) == 0 ? 0 : errno;
  }
  if (error != 0) ::close(std::exchange(id.socket, -1));
  return error;
}

bool is_internet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

AnyAddress copy_of(const sockaddr* address) {
  AnyAddress made{};
  if (address->sa_family == AF_INET) {
    made.four = *reinterpret_cast<const sockaddr_in*>(address);
  } else {
    made.six = *reinterpret_cast<const sockaddr_in6*>(address);
  }
  return made;
}

int bind_address(Identifier& id, const sockaddr* address) {
  if (id.phase != Phase::idle || id.socket >= 0) return EINVAL;
  if (!is_internet(address)) return EOPNOTSUPP;
  const AnyAddress source = copy_of(address);
  if (!is_within_machine(source)) {
    const auto place = find_place(source);
    if (!place) return ENODEV;
    put(id, *place);
  }
  id.shown.route.source = source;
  return bind_socket(id);
}

int resolve_address(Identifier& id, const sockaddr* source, const sockaddr* destination) {
  if (id.phase != Phase::idle) return EINVAL;
  if (!is_internet(destination)) return EOPNOTSUPP;
  Route& route = id.shown.route;
  if (is_internet(source)) route.source = copy_of(source);
  route.destination = copy_of(destination);
  const std::uint16_t asked_port = port_of(route.source);
  int error = 0;
  if (!is_internet(&route.source.any) || is_within_machine(route.source)) {
    error = find_source(route.destination, route.source);
    if (asked_port != 0) set_port(route.source, asked_port);
  }
  std::optional<Place> place;
  if (error == 0)
    place = is_within_machine(route.source) ? any_place({}) : find_place(route.source);
  if (!place) {
    add_event(id, EventKind::address_error, error == 0 ? -ENODEV : -error);
    return 0;
  }
  put(id, *place);
  id.is_resolved = true;
  add_event(id, EventKind::address_resolved);
  return 0;
}

// What InfiniBand's subnet manager would tell. Programs read the path's packet size.
int resolve_route(Identifier& id) {
  if (id.phase != Phase::idle || !id.is_resolved) return EINVAL;
  Route& route = id.shown.route;
  id.path = {};
  id.path.sgid = route.source_gid;
  if (id.place.is_ethernet) route.destination_gid = gid_of(route.destination);
  id.path.dgid = route.destination_gid;
  id.path.hop_limit = id.place.is_ethernet ? 64 : 0;
  id.path.traffic_class = id.service_type;
  id.path.reversible = 1;
  id.path.numb_path = 1;
  id.path.pkey = 0xffff;
  id.path.mtu_selector = 2;  // it is exactly this one
  id.path.mtu = static_cast<std::uint8_t>(id.place.mtu);
  route.paths = &id.path;
  route.path_count = 1;
  route.partition_key = 0xffff;
  add_event(id, EventKind::route_resolved);
  return 0;
}

int connect(Identifier& id, const ConnectionParameters* given) {
  if (id.phase != Phase::idle || !id.is_resolved) return EINVAL;
  ConnectionParameters parameters{};
  parameters.responder_resources = parameters.initiator_depth = kMostThereAre;
  parameters.flow_control = 1;
  parameters.retry_count = parameters.rnr_retry_count = 7;
  if (given != nullptr) parameters = *given;
  describe_own_end(id, MessageKind::request);
  const ibv_qp* const pair = id.shown.pair;
  id.own.pair = pair == nullptr ? parameters.pair & 0xffffff : pair->qp_num;
  id.own.has_shared_queue = pair == nullptr ? parameters.has_shared_queue : pair->srq != nullptr;
  id.own.flow_control = parameters.flow_control;
  id.own.retry_count = parameters.retry_count & 7;
  id.own.rnr_retry_count = parameters.rnr_retry_count & 7;
  bound_resources(id, parameters.responder_resources, parameters.initiator_depth);
  id.own.from = endpoint_of(id.shown.route.source);
  id.own.to = endpoint_of(id.shown.route.destination);
  const auto* const data = static_cast<const std::uint8_t*>(parameters.data);
  if (data != nullptr) id.own.data.assign(data, data + parameters.data_length);
  if (given == nullptr || parameters.data_length == 0) id.own.data = id.data_for_connect;
  id.is_active = true;
  connect_socket(id);
  return 0;
}

int accept(Identifier& id, const ConnectionParameters* given) {
  if (id.phase == Phase::over) return ECONNRESET;
  if (id.phase != Phase::requested) return EINVAL;
  const ibv_qp* const pair = id.shown.pair;
  id.own.rnr_retry_count = 7;
  if (given != nullptr) {
    bound_resources(id, given->responder_resources, given->initiator_depth);
    id.own.flow_control = given->flow_control;
    id.own.rnr_retry_count = given->rnr_retry_count & 7;
    const auto* const data = static_cast<const std::uint8_t*>(given->data);
    if (data != nullptr) id.own.data.assign(data, data + given->data_length);
  }
  id.own.pair = pair != nullptr ? pair->qp_num : given != nullptr ? given->pair & 0xffffff : 0;
  id.own.has_shared_queue =
      pair != nullptr ? pair->srq != nullptr : given != nullptr && given->has_shared_queue != 0;
  if (pair != nullptr && !id.is_datagram()) {
    if (const int error = let_pair_communicate(id); error != 0) return error;
  }
  if (!send_message(id, id.own)) return ECONNRESET;
  id.phase = Phase::accepted;
  return 0;
}

int disconnect(Identifier& id) {
  const bool is_connected =
      id.phase == Phase::accepted || id.phase == Phase::answered || id.phase == Phase::established;
  if (id.is_datagram() || (!is_connected && !id.was_disconnected)) return EINVAL;
  if (id.shown.pair != nullptr) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    (void)::ibv_modify_qp(id.shown.pair, &attributes, IBV_QP_STATE);
  }
  if (is_connected) (void)send_message(id, plain_message(MessageKind::goodbye));
  disconnected(id);
  start_timer(id, kPacketsLinger_s);
  return 0;
}

}  // namespace

std::unique_ptr<Identifier> make_identifier(ManagedChannel& channel, int space, ibv_qp_type kind) {
  auto id = std::make_unique<Identifier>();
  id->channel = &channel;
  id->shown.channel = &channel.shown;
  id->shown.space = space;
  id->shown.pair_kind = kind;
  return id;
}

void close_connection(Identifier& id) {
  while (!id.arriving.empty()) forget_arriving(id.arriving.front());
  drop_timer(id);
  if (id.socket >= 0) ::close(std::exchange(id.socket, -1));
  id.received.clear();
}

void advance(Identifier& id) {
  if (id.phase == Phase::listening) return take_connection(id);
  std::uint64_t expired = 0;
  if (id.timer >= 0 && ::read(id.timer, &expired, sizeof expired) == sizeof expired) {
    if (id.phase != Phase::over) return end(id, EventKind::unreachable, -ETIMEDOUT);
    drop_timer(id);
    add_event(id, EventKind::timewait_exit);
  }
  if (id.socket < 0) return;
  if (id.phase == Phase::connecting && !finish_connect(id)) return;
  const bool is_open = read_socket(id) && id.received.size() <= kMostReceived;
  while (id.socket >= 0) {
    auto message = take_message(id.received);
    if (!message) return lose(id);
    if (!*message) break;
    const bool may_be_gone = id.phase == Phase::arriving;
    take(id, **message);
    if (may_be_gone) return;
  }
  if (!is_open && id.socket >= 0) lose(id);
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

// Calls `use` with the identifier while the lock is held. Then an identifier whose calls wait waits
// for the event.
template <class Use>
static int perform(CmId* shown, bool has_event, const Use& use) {
  if (shown == nullptr) return answer(EINVAL);
  Identifier& id = of(shown);
  int error = 0;
  {
    const std::lock_guard lock(Manager::get().mutex);
    error = use(id);
  }
  if (error == 0 && has_event) error = complete(id);
  return answer(error);
}

DIAPAUSE_RDMA int rdma_bind_addr(CmId* shown, sockaddr* address) {
  return perform(shown, false, [&](Identifier& id) { return bind_address(id, address); });
}

DIAPAUSE_RDMA int rdma_resolve_addr(CmId* shown, sockaddr* source, sockaddr* destination, int) {
  return perform(shown, true,
                 [&](Identifier& id) { return resolve_address(id, source, destination); });
}

DIAPAUSE_RDMA int rdma_resolve_route(CmId* shown, int) {
  return perform(shown, true, resolve_route);
}

DIAPAUSE_RDMA int rdma_listen(CmId* shown, int backlog) {
  return perform(shown, false, [&](Identifier& id) {
    if (id.phase != Phase::idle) return EINVAL;
    if (id.socket < 0) {
      if (!is_internet(&shown->route.source.any)) shown->route.source.any.sa_family = AF_INET;
      if (const int error = bind_socket(id); error != 0) return error;
    }
    const int length = backlog <= 0 ? kMostBacklog : std::min(backlog, kMostBacklog);
    if (::listen(id.socket, length) != 0) return errno;
    id.phase = Phase::listening;
    watch(id, id.socket, EPOLLIN);
    return 0;
  });
}

DIAPAUSE_RDMA int rdma_connect(CmId* shown, ConnectionParameters* parameters) {
  return perform(shown, true, [&](Identifier& id) { return connect(id, parameters); });
}

DIAPAUSE_RDMA int rdma_establish(CmId* shown) {
  return perform(shown, false, [](Identifier& id) {
    if (id.phase != Phase::answered || id.shown.pair != nullptr) return EINVAL;
    if (!send_message(id, plain_message(MessageKind::ready))) return ECONNRESET;
    id.phase = Phase::established;
    return 0;
  });
}

DIAPAUSE_RDMA int rdma_accept(CmId* shown, ConnectionParameters* parameters) {
  const bool has_event = shown != nullptr && shown->pair_kind != IBV_QPT_UD;
  return perform(shown, has_event, [&](Identifier& id) { return accept(id, parameters); });
}

DIAPAUSE_RDMA int rdma_reject(CmId* shown, const void* data, std::uint8_t length) {
  return perform(shown, false, [&](Identifier& id) {
    if (id.phase == Phase::over) return 0;
    if (id.phase != Phase::requested) return EINVAL;
    const auto* const bytes = static_cast<const std::uint8_t*>(data);
    reject(id, kByConsumer,
           bytes == nullptr ? std::vector<std::uint8_t>{}
                            : std::vector<std::uint8_t>(bytes, bytes + length));
    return 0;
  });
}

DIAPAUSE_RDMA int rdma_reject_ece(CmId* shown, const void* data, std::uint8_t length) {
  return rdma_reject(shown, data, length);
}

DIAPAUSE_RDMA int rdma_disconnect(CmId* shown) { return perform(shown, true, disconnect); }

// The first message of the other end says that it is ready. Its own message says so, too.
DIAPAUSE_RDMA int rdma_notify(CmId*, int) { return 0; }

DIAPAUSE_RDMA std::uint16_t rdma_get_src_port(CmId* shown) {
  return htons(port_of(shown->route.source));
}

DIAPAUSE_RDMA std::uint16_t rdma_get_dst_port(CmId* shown) {
  return htons(port_of(shown->route.destination));
}
