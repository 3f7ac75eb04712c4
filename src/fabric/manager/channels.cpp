// Channels and their events. Whatever there is to do for connections is done by the thread that
// asks for an event.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "fabric/manager/manager.hpp"

namespace diapause::fabric {
namespace {

void ring(const ManagedChannel& channel) {
  constexpr std::uint64_t kOne = 1;
  (void)!::write(channel.bell, &kOne, sizeof kOne);
}

void silence(const ManagedChannel& channel) {
  std::uint64_t count = 0;
  (void)!::read(channel.bell, &count, sizeof count);
}

std::unique_ptr<Event> take_event(ManagedChannel& channel) {
  if (channel.events.empty()) return nullptr;
  std::unique_ptr<Event> event = std::move(channel.events.front());
  channel.events.pop_front();
  if (channel.events.empty()) silence(channel);
  ++event->counted_by->events_given;
  return event;
}

// Deals with what sockets have to say until there is an event, or nothing more to do.
std::unique_ptr<Event> next_event(ManagedChannel& channel) {
  for (;;) {
    if (auto event = take_event(channel)) return event;
    epoll_event ready{};
    if (::epoll_wait(channel.shown.fd, &ready, 1, 0) <= 0) return nullptr;
    if (ready.data.ptr == nullptr) {
      silence(channel);
    } else {
      advance(*static_cast<Identifier*>(ready.data.ptr));
    }
  }
}

int get_event(ManagedChannel& channel, CmEvent** event) {
  for (;;) {
    {
      const std::lock_guard lock(Manager::get().mutex);
      if (std::unique_ptr<Event> found = next_event(channel)) {
        *event = &found.release()->shown;
        return 0;
      }
    }
    if ((::fcntl(channel.shown.fd, F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
    pollfd one{channel.shown.fd, POLLIN, 0};
    if (::poll(&one, 1, -1) < 0) return errno;
  }
}

void acknowledge(CmEvent* shown) {
  Event* const event = reinterpret_cast<Event*>(shown);
  ++event->counted_by->events_acknowledged;
  delete event;
  Manager::get().acknowledged.notify_all();
}

void watch_all(Identifier& id) {
  if (id.socket >= 0 && id.phase != Phase::idle)
    watch(id, id.socket, id.phase == Phase::connecting ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (id.timer >= 0) watch(id, id.timer, EPOLLIN);
}

int create_id(EventChannel* channel, CmId** id, void* context, int space) {
  if (space != kSpaceTcp && space != kSpaceUdp) return EOPNOTSUPP;
  ManagedChannel* const used = channel == nullptr ? make_channel() : &of(channel);
  if (used == nullptr) return errno;
  const std::lock_guard lock(Manager::get().mutex);
  auto made = make_identifier(*used, space, space == kSpaceUdp ? IBV_QPT_UD : IBV_QPT_RC);
  made->is_waiting = channel == nullptr;
  made->shown.context = context;
  *id = &made.release()->shown;
  return 0;
}

// Forgets the events of an identifier that nobody has taken, and the connections that would have
// become known by them.
void forget_events(Identifier& id) {
  std::vector<Identifier*> unknown;
  std::erase_if(id.channel->events, [&](const std::unique_ptr<Event>& one) {
    if (one->counted_by != &id) return false;
    if (one->shown.kind == EventKind::connect_request) unknown.push_back(&of(one->shown.id));
    return true;
  });
  if (id.channel->events.empty()) silence(*id.channel);
  for (Identifier* const one : unknown) {
    close_connection(*one);
    if (one->is_waiting) destroy_channel(one->channel);
    delete one;
  }
}

}  // namespace

Manager& Manager::get() {
  // Never destroyed: the program may use it while it ends.
  static Manager* const manager = new Manager;
  return *manager;
}

int answer(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

void watch(Identifier& id, int descriptor, std::uint32_t events) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = &id;
  if (::epoll_ctl(id.channel->shown.fd, EPOLL_CTL_MOD, descriptor, &wanted) != 0)
    ::epoll_ctl(id.channel->shown.fd, EPOLL_CTL_ADD, descriptor, &wanted);
}

void unwatch(const Identifier& id, int descriptor) {
  ::epoll_ctl(id.channel->shown.fd, EPOLL_CTL_DEL, descriptor, nullptr);
}

ManagedChannel* make_channel() {
  auto channel = std::make_unique<ManagedChannel>();
  channel->shown.fd = ::epoll_create1(EPOLL_CLOEXEC);
  channel->bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event events{};
  events.events = EPOLLIN;
  const bool is_made = channel->shown.fd >= 0 && channel->bell >= 0 &&
                       ::epoll_ctl(channel->shown.fd, EPOLL_CTL_ADD, channel->bell, &events) == 0;
  if (is_made) return channel.release();
  const int error = errno;
  if (channel->shown.fd >= 0) ::close(channel->shown.fd);
  if (channel->bell >= 0) ::close(channel->bell);
  errno = error;
  return nullptr;
}

void destroy_channel(ManagedChannel* channel) {
  ::close(channel->shown.fd);
  ::close(channel->bell);
  delete channel;
}

void move_to(Identifier& id, ManagedChannel& channel) {
  if (id.socket >= 0) unwatch(id, id.socket);
  if (id.timer >= 0) unwatch(id, id.timer);
  id.channel = &channel;
  id.shown.channel = &channel.shown;
  watch_all(id);
  for (Identifier* const one : id.arriving) move_to(*one, channel);
}

Event& add_event(Identifier& id, EventKind kind, int status) {
  auto event = std::make_unique<Event>();
  event->shown.id = &id.shown;
  event->shown.kind = kind;
  event->shown.status = status;
  // The program does not know a new connection yet, and destroys the one that listens.
  const bool is_new = kind == EventKind::connect_request;
  event->counted_by = is_new ? id.listener : &id;
  event->shown.listener = is_new ? &id.listener->shown : nullptr;
  ManagedChannel& channel = *event->counted_by->channel;
  if (channel.events.empty()) ring(channel);
  channel.events.push_back(std::move(event));
  return *channel.events.back();
}

void add_event(Identifier& id, EventKind kind, int status, const ConnectionMessage& other) {
  Event& event = add_event(id, kind, status);
  event.data = other.data;
  const void* const data = event.data.empty() ? nullptr : event.data.data();
  const auto length = static_cast<std::uint8_t>(event.data.size());
  if (id.is_datagram()) {
    DatagramParameters& given = event.shown.parameters.datagram;
    given.data = data;
    given.data_length = length;
    if (kind != EventKind::established) return;
    given.address = address_of_other(id);
    given.pair = other.pair;
    given.key = other.pair_key;
    return;
  }
  ConnectionParameters& given = event.shown.parameters.connection;
  given.data = data;
  given.data_length = length;
  given.responder_resources = other.initiator_depth;
  given.initiator_depth = other.responder_resources;
  given.flow_control = other.flow_control;
  given.retry_count = other.retry_count;
  given.rnr_retry_count = other.rnr_retry_count;
  given.has_shared_queue = other.has_shared_queue;
  given.pair = other.pair;
}

int complete(Identifier& id) {
  if (!id.is_waiting) return 0;
  if (id.shown.event != nullptr) {
    const std::lock_guard lock(Manager::get().mutex);
    acknowledge(id.shown.event);
    id.shown.event = nullptr;
  }
  if (const int error = get_event(*id.channel, &id.shown.event); error != 0) return error;
  const CmEvent& event = *id.shown.event;
  if (event.status == 0) return 0;
  if (event.kind == EventKind::rejected) return ECONNREFUSED;
  return std::abs(event.status);
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_RDMA EventChannel* rdma_create_event_channel() {
  ManagedChannel* const channel = make_channel();
  return channel == nullptr ? nullptr : &channel->shown;
}

DIAPAUSE_RDMA void rdma_destroy_event_channel(EventChannel* channel) {
  const std::lock_guard lock(Manager::get().mutex);
  destroy_channel(&of(channel));
}

DIAPAUSE_RDMA int rdma_create_id(EventChannel* channel, CmId** id, void* context, int space) {
  return answer(create_id(channel, id, context, space));
}

DIAPAUSE_RDMA int rdma_destroy_id(CmId* shown) {
  Identifier& id = of(shown);
  std::unique_lock lock(Manager::get().mutex);
  if (shown->event != nullptr) acknowledge(std::exchange(shown->event, nullptr));
  close_connection(id);
  forget_events(id);
  Manager::get().acknowledged.wait(lock, [&] { return id.events_acknowledged == id.events_given; });
  if (id.is_waiting) destroy_channel(id.channel);
  delete &id;
  return 0;
}

DIAPAUSE_RDMA int rdma_get_cm_event(EventChannel* channel, CmEvent** event) {
  return answer(get_event(of(channel), event));
}

DIAPAUSE_RDMA int rdma_ack_cm_event(CmEvent* event) {
  if (event == nullptr) return answer(EINVAL);
  const std::lock_guard lock(Manager::get().mutex);
  acknowledge(event);
  return 0;
}

DIAPAUSE_RDMA int rdma_migrate_id(CmId* shown, EventChannel* channel) {
  Identifier& id = of(shown);
  ManagedChannel* const next = channel == nullptr ? make_channel() : &of(channel);
  if (next == nullptr) return -1;
  const std::lock_guard lock(Manager::get().mutex);
  if (id.is_waiting && shown->event != nullptr) acknowledge(std::exchange(shown->event, nullptr));
  ManagedChannel* const before = id.channel;
  move_to(id, *next);
  for (auto& one : before->events) {
    if (one->counted_by != &id) continue;
    if (one->shown.kind == EventKind::connect_request && !of(one->shown.id).is_waiting)
      move_to(of(one->shown.id), *next);
    if (next->events.empty()) ring(*next);
    next->events.push_back(std::move(one));
  }
  std::erase(before->events, nullptr);
  if (before->events.empty()) silence(*before);
  if (id.is_waiting) destroy_channel(before);
  id.is_waiting = channel == nullptr;
  return 0;
}

DIAPAUSE_RDMA const char* rdma_event_str(EventKind kind) {
  constexpr std::array kNames{"RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
                              "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
                              "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
                              "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
                              "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
                              "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
                              "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
                              "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "UNKNOWN EVENT";
}
