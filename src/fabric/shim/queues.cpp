// Provides completion queues and shared receive queues.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <ranges>
#include <utility>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {

void Receives::prepare(std::uint32_t most, std::uint32_t most_pieces) {
  mark_ = std::uint64_t{Shim::get().receive_mark} << 32;
  most_pieces_ = most_pieces;
  count_ = most + 1;
  slots_ = std::vector<Slot>(count_);
  pieces_.assign(std::size_t{count_} * most_pieces, {});
  for (std::uint32_t i = 0; i < count_; ++i) {
    slots_[i].real.wr_id = mark_ | i;
    slots_[i].real.sg_list = pieces_.data() + std::size_t{i} * most_pieces;
  }
  forget_all();
}

void Receives::forget_all() {
  Slot* next = nullptr;
  for (Slot& one : std::views::reverse(slots_)) {
    one.order = 0;
    one.next_free = std::exchange(next, &one);
  }
  first_free_ = &slots_.front();
  last_free_ = &slots_.back();
  taken_ = 0;
}

std::vector<Receives::Slot*> Receives::in_order() {
  std::vector<Slot*> taken;
  for (Slot& one : slots_) {
    if (one.order != 0) taken.push_back(&one);
  }
  std::ranges::sort(taken, {}, &Slot::order);
  return taken;
}

Status open_real(Shim& shim, CompletionQueue& queue) {
  ibv_comp_channel* const channel = queue.channel == nullptr ? nullptr : queue.channel->real;
  queue.real = shim.real.ibv_create_cq(of(queue.shown.context).real, queue.shown.cqe, &queue,
                                       channel, queue.vector);
  if (queue.real == nullptr) {
    return fail(os_error(
        fmt::format("making a completion queue of {} entries again", queue.shown.cqe), errno));
  }
  queue.poll_cq = queue.real->context->ops.poll_cq;
  return {};
}

Status open_real(Shim& shim, SharedQueue& queue) {
  ibv_srq_init_attr init{&queue, queue.attributes};
  queue.real = shim.real.ibv_create_srq(of(queue.shown.pd).real, &init);
  if (queue.real != nullptr) return {};
  return fail(os_error(
      fmt::format("making a shared receive queue of {} entries again", queue.attributes.max_wr),
      errno));
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_VERB ibv_cq* ibv_create_cq(ibv_context* shown, int entries, void* context,
                                    ibv_comp_channel* channel, int vector) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_create_cq(shown, entries, context, channel, vector);
  const Passage passage(shim.gate);
  auto queue = std::make_unique<CompletionQueue>();
  queue->shown.context = shown;
  queue->shown.channel = channel;
  queue->shown.cq_context = context;
  queue->shown.cqe = entries;
  queue->channel = channel == nullptr ? nullptr : &of(channel);
  queue->vector = vector;
  ::pthread_mutex_init(&queue->shown.mutex, nullptr);
  ::pthread_cond_init(&queue->shown.cond, nullptr);
  if (!open_real(shim, *queue)) return nullptr;
  queue->shown.handle = queue->real->handle;
  queue->shown.cqe = queue->real->cqe;
  if (channel != nullptr) ++channel->refcnt;
  shim.queues.add(queue.get());
  return &queue.release()->shown;
}

DIAPAUSE_VERB int ibv_resize_cq(ibv_cq* shown, int entries) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_resize_cq(shown, entries);
  const Passage passage(shim.gate);
  CompletionQueue& queue = of(shown);
  const int error = shim.real.ibv_resize_cq(queue.real, entries);
  if (error == 0) shown->cqe = queue.real->cqe;
  return error;
}

DIAPAUSE_VERB int ibv_destroy_cq(ibv_cq* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_destroy_cq(shown);
  CompletionQueue& queue = of(shown);
  {
    const Passage passage(shim.gate);
    const int error = shim.real.ibv_destroy_cq(queue.real);
    if (error != 0) return error;
    shim.queues.remove(&queue);
    if (queue.channel != nullptr) {
      const Holding holding(queue.channel->lock);
      forget_events(*queue.channel, queue);
      --queue.channel->shown.refcnt;
    }
  }
  // The program may still be dealing with an event of this queue in another thread.
  ::pthread_mutex_lock(&shown->mutex);
  while (shown->comp_events_completed != queue.events_given)
    ::pthread_cond_wait(&shown->cond, &shown->mutex);
  ::pthread_mutex_unlock(&shown->mutex);
  delete &queue;
  return 0;
}

DIAPAUSE_VERB ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* init) {
  Shim& shim = Shim::get();
  if (!is_ours(domain->context)) return shim.real.ibv_create_srq(domain, init);
  const Passage passage(shim.gate);
  auto queue = std::make_unique<SharedQueue>();
  queue->shown.context = domain->context;
  queue->shown.srq_context = init->srq_context;
  queue->shown.pd = domain;
  queue->attributes = init->attr;
  ::pthread_mutex_init(&queue->shown.mutex, nullptr);
  ::pthread_cond_init(&queue->shown.cond, nullptr);
  ibv_srq_init_attr real{queue.get(), init->attr};
  queue->real = shim.real.ibv_create_srq(of(domain).real, &real);
  if (queue->real == nullptr) return nullptr;
  init->attr = real.attr;  // the values that the adapter really gives
  queue->attributes.max_wr = real.attr.max_wr;
  queue->attributes.max_sge = real.attr.max_sge;
  queue->shown.handle = queue->real->handle;
  queue->receives.prepare(real.attr.max_wr, real.attr.max_sge);
  queue->receives.see_what_is_plain(of(domain->context).local_keys);
  shim.shared_queues.add(queue.get());
  return &queue.release()->shown;
}

DIAPAUSE_VERB int ibv_modify_srq(ibv_srq* shown, ibv_srq_attr* attributes, int mask) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_modify_srq(shown, attributes, mask);
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_modify_srq(of(shown).real, attributes, mask);
  if (error == 0 && (mask & IBV_SRQ_LIMIT) != 0)
    of(shown).attributes.srq_limit = attributes->srq_limit;
  return error;
}

DIAPAUSE_VERB int ibv_query_srq(ibv_srq* shown, ibv_srq_attr* attributes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_query_srq(shown, attributes);
  const Passage passage(shim.gate);
  return shim.real.ibv_query_srq(of(shown).real, attributes);
}

DIAPAUSE_VERB int ibv_destroy_srq(ibv_srq* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_destroy_srq(shown);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_destroy_srq(of(shown).real);
  if (error != 0) return error;
  shim.shared_queues.remove(&of(shown));
  delete &of(shown);
  return 0;
}
