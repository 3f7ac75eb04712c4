// Provides completion channels, and the events of contexts. A program that polls their descriptors
// has an epoll set, which outlives the adapters.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

void silence(int bell) {
  std::uint64_t count = 0;
  (void)!::read(bell, &count, sizeof count);
}

// Waits until something may be there to be read; fails as the read of a real channel would.
int wait_for(int descriptor) {
  if ((::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0) {
    errno = EAGAIN;
    return -1;
  }
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, -1) < 0 ? -1 : 0;
}

// Reads an event of the adapter. The real queue is not destroyed until it is acknowledged. Returns
// null and an error number if there is none.
ibv_cq* read_event(Shim& shim, ibv_comp_channel& from) {
  ibv_cq* real = nullptr;
  void* queue = nullptr;
  errno = EIO;  // the end of a file sets none
  return shim.real.ibv_get_cq_event(&from, &real, &queue) == 0 ? real : nullptr;
}

CompletionQueue& queue_of(const ibv_cq& real) {
  return *static_cast<CompletionQueue*>(real.cq_context);
}

void set_waiting(int descriptor, bool is_waiting) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  ::fcntl(descriptor, F_SETFL, is_waiting ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

// From now on calls wait for the adapter. The caller has the lock, or has closed the gate.
void attach(Channel& channel) {
  set_waiting(channel.real->fd, channel.is_waiting);
  ::dup3(channel.real->fd, channel.reading.fd, O_CLOEXEC);
  channel.attachments.fetch_add(1);
}

// The caller has the lock, and has taken held events.
void note_taken(Channel& channel) {
  if (!channel.held.empty()) return;
  silence(channel.bell);
  attach(channel);
}

// Returns null if there is none.
CompletionQueue* take_held(Shim& shim, Channel& channel) {
  const Passage passage(shim.gate);
  const Holding holding(channel.lock);
  if (channel.held.empty()) return nullptr;
  CompletionQueue* const queue = channel.held.front();
  channel.held.pop_front();
  queue->events_given.fetch_add(1);
  note_taken(channel);
  return queue;
}

// Calls wait as the program's descriptor says now.
void follow(Shim& shim, Channel& channel) {
  const bool is_waiting = (::fcntl(channel.shown.fd, F_GETFL) & O_NONBLOCK) == 0;
  if (is_waiting == channel.is_waiting.load(std::memory_order_relaxed)) return;
  const Passage passage(shim.gate);
  const Holding holding(channel.lock);
  channel.is_waiting = is_waiting;
  set_waiting(channel.real->fd, is_waiting);
}

// Lets an event speak of the program's objects.
void translate(ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      event.element.cq = &static_cast<CompletionQueue*>(event.element.cq->cq_context)->shown;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      event.element.qp = &static_cast<QueuePair*>(event.element.qp->qp_context)->shown;
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      auto& queue = *static_cast<SharedQueue*>(event.element.srq->srq_context);
      queue.attributes.srq_limit = 0;
      event.element.srq = &queue.shown;
      break;
    }
    default:
      break;
  }
}

bool take_real_event(Shim& shim, Context& context, ibv_async_event& event) {
  if (context.real == nullptr || shim.real.ibv_get_async_event(context.real, &event) != 0)
    return false;
  ibv_async_event copy = event;
  translate(event);
  shim.real.ibv_ack_async_event(&copy);
  return true;
}

}  // namespace

void ring(int bell) {
  constexpr std::uint64_t kOne = 1;
  (void)!::write(bell, &kOne, sizeof kOne);
}

int watched(int descriptor, int bell) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int one : {descriptor, bell}) {
    epoll_event events{};
    events.events = EPOLLIN;
    if (one >= 0) ::epoll_ctl(set, EPOLL_CTL_ADD, one, &events);
  }
  return set;
}

Status open_real(Shim& shim, Channel& channel) {
  channel.real = shim.real.ibv_create_comp_channel(of(channel.shown.context).real);
  if (channel.real == nullptr) return fail(os_error("making a completion channel", errno));
  if (channel.held.empty()) attach(channel);
  epoll_event events{};
  events.events = EPOLLIN;
  if (::epoll_ctl(channel.shown.fd, EPOLL_CTL_ADD, channel.real->fd, &events) == 0) return {};
  return fail(os_error("watching a completion channel", errno));
}

void take_events(Shim& shim, Channel& channel) {
  ::dup3(shim.nothing, channel.reading.fd, O_CLOEXEC);
  set_waiting(channel.real->fd, false);
  while (ibv_cq* const real = read_event(shim, *channel.real)) {
    queue_of(*real).has_missed_event = false;
    channel.held.push_back(&queue_of(*real));
    shim.real.ibv_ack_cq_events(real, 1);
  }
}

void forget_events(Channel& channel, const CompletionQueue& queue) {
  const std::size_t forgotten = std::erase(channel.held, &queue);
  if (forgotten > 0) note_taken(channel);
}

void take_events(Shim& shim, Context& context) {
  for (ibv_async_event event{}; take_real_event(shim, context, event);)
    context.held_events.push_back(event);
  if (!context.held_events.empty()) ring(context.bell);
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_VERB ibv_comp_channel* ibv_create_comp_channel(ibv_context* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_create_comp_channel(shown);
  const Passage passage(shim.gate);
  auto channel = std::make_unique<Channel>();
  channel->bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  channel->shown = {shown, watched(-1, channel->bell), 0};
  channel->reading.fd = ::fcntl(shim.nothing, F_DUPFD_CLOEXEC, 0);
  if (channel->reading.fd < 0 || !open_real(shim, *channel)) {
    const int error = errno;
    if (channel->real != nullptr) shim.real.ibv_destroy_comp_channel(channel->real);
    for (const int one : {channel->shown.fd, channel->bell, channel->reading.fd}) ::close(one);
    errno = error;
    return nullptr;
  }
  shim.channels.add(channel.get());
  return &channel.release()->shown;
}

DIAPAUSE_VERB int ibv_destroy_comp_channel(ibv_comp_channel* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_destroy_comp_channel(shown);
  const Passage passage(shim.gate);
  Channel& channel = of(shown);
  const int error = shim.real.ibv_destroy_comp_channel(channel.real);
  if (error != 0) return error;
  for (const int one : {shown->fd, channel.bell, channel.reading.fd}) ::close(one);
  shim.channels.remove(&channel);
  delete &channel;
  return 0;
}

DIAPAUSE_VERB int ibv_get_cq_event(ibv_comp_channel* shown, ibv_cq** queue, void** queue_context) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_get_cq_event(shown, queue, queue_context);
  Channel& channel = of(shown);
  follow(shim, channel);
  CompletionQueue* found = nullptr;
  while (found == nullptr) {
    const std::uint32_t attachments = channel.attachments.load();
    if (ibv_cq* const real = read_event(shim, channel.reading)) {
      found = &queue_of(*real);
      found->events_given.fetch_add(1);
      shim.real.ibv_ack_cq_events(real, 1);
    } else if (errno != EIO) {
      return -1;
    } else {
      found = take_held(shim, channel);
      if (found == nullptr && attachments == channel.attachments.load()) {
        errno = EIO;  // the adapter's own
        return -1;
      }
    }
  }
  *queue = &found->shown;
  *queue_context = found->shown.cq_context;
  return 0;
}

DIAPAUSE_VERB void ibv_ack_cq_events(ibv_cq* shown, unsigned count) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_ack_cq_events(shown, count);
  ::pthread_mutex_lock(&shown->mutex);
  shown->comp_events_completed += count;
  ::pthread_cond_signal(&shown->cond);
  ::pthread_mutex_unlock(&shown->mutex);
}

DIAPAUSE_VERB int ibv_get_async_event(ibv_context* shown, ibv_async_event* event) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_get_async_event(shown, event);
  Context& context = of(shown);
  for (;;) {
    {
      const Passage passage(shim.gate);
      const Holding holding(context.lock);
      if (!context.held_events.empty()) {
        *event = context.held_events.front();
        context.held_events.pop_front();
        if (context.held_events.empty()) silence(context.bell);
        return 0;
      }
      if (take_real_event(shim, context, *event)) return 0;
    }
    if (wait_for(shown->async_fd) != 0) return -1;
  }
}

// The real event was acknowledged when it was taken.
DIAPAUSE_VERB void ibv_ack_async_event(ibv_async_event*) {}
