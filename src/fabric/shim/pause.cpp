// The steps of a checkpoint; see control.hpp.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

constexpr double kMostDrain_s = 2;
constexpr int kPause_us = 50;

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Returns whether the queue pair may have sent, and has a peer that may have sent to it.
bool is_connected(const QueuePair& pair) {
  return pair.shown.qp_type == IBV_QPT_RC && (pair.known & IBV_QP_AV) != 0 &&
         (pair.state == IBV_QPS_RTR || pair.state == IBV_QPS_RTS || pair.state == IBV_QPS_SQD);
}

Record record_of(const QueuePair& pair) {
  Record record;
  record.kind = RecordKind::pair;
  record.home = pair.context().home;
  record.port = pair.attributes.port_num;
  record.shown = pair.shown.qp_num;
  record.real = pair.real->qp_num;
  record.is_reliable = pair.shown.qp_type == IBV_QPT_RC;
  record.is_connected = is_connected(pair);
  record.is_broken = pair.is_broken || pair.state == IBV_QPS_ERR;
  record.sent = pair.sent;
  if (record.is_connected == 0) return record;
  const Address peer = address_of(pair.attributes.ah_attr);
  record.peer = pair.attributes.dest_qp_num;
  record.is_by_gid = peer.is_by_gid;
  record.shown_gid = peer.gid;
  record.peer_lid = peer.lid;
  return record;
}

void add_ports(const Context& context, std::vector<Record>& records) {
  for (std::uint32_t i = 0; i < context.ports.size(); ++i) {
    const Port& port = context.ports[i];
    Record record;
    record.port = i + 1;
    record.home = context.home;
    record.shown = port.shown_lid;
    record.real = port.real_lid;
    records.push_back(record);
    record.kind = RecordKind::gid;
    for (const GidEntry& gid : port.gids) {
      record.shown_gid = gid.shown;
      record.real_gid = gid.real;
      if (gid.shown != Gid{}) records.push_back(record);
    }
  }
}

// Takes all completions that are there.
Status take_all(CompletionQueue& queue) {
  std::array<ibv_wc, 32> completions;
  const std::size_t before = queue.held.size();
  for (;;) {
    const Taken taken =
        take_completions(queue, completions.size(), completions.data(), Others::held);
    if (taken.from_adapter < 0)
      return fail(Code::io, "a completion queue cannot be read: it has overflown");
    if (taken.from_adapter == 0) break;
    queue.held.insert(queue.held.end(), completions.begin(),
                      completions.begin() + taken.for_program);
    queue.has_held = !queue.held.empty();
  }
  if (queue.is_armed && queue.held.size() > before) queue.has_missed_event = true;
  return {};
}

// Says why the data that a queue pair has sent, or that was sent to it, has not all arrived yet.
// The text is empty if it has.
Result<std::string> what_is_missing(const Directory& peers, QueuePair& pair) {
  if (pair.is_broken || pair.state == IBV_QPS_RESET || pair.state == IBV_QPS_INIT)
    return std::string();
  const bool may_send = pair.state == IBV_QPS_RTS;
  if (may_send && pair.signalled_done == pair.signalled && pair.ends_silently &&
      !pair.is_marker_on_its_way) {
    DIAPAUSE_TRY(post_marker(pair));
  }
  const bool has_peer = is_connected(pair);
  const Record* const peer =
      has_peer ? peers.find_pair(address_of(pair.attributes.ah_attr), pair.attributes.dest_qp_num)
               : nullptr;
  if (pair.signalled_done != pair.signalled || pair.is_marker_on_its_way) {
    return fmt::format(
        "{} of the messages that queue pair {} has sent have not arrived: {}",
        pair.signalled - pair.signalled_done, pair.shown.qp_num,
        has_peer && peer == nullptr
            ? fmt::format("their receiver, queue pair {}, is gone, or not of the job, and the "
                          "adapter goes on trying",
                          pair.attributes.dest_qp_num)
            : "their receiver has posted no receive for them, or cannot be reached");
  }
  if (!has_peer) return std::string();
  if (peer == nullptr) {
    return fmt::format("queue pair {} is connected to {}, which is not of the job",
                       pair.shown.qp_num, pair.attributes.dest_qp_num);
  }
  const bool is_ours =
      peer->is_connected != 0 && peer->is_broken == 0 && peer->peer == pair.shown.qp_num;
  if (!is_ours || peer->sent == pair.received) return std::string();
  return fmt::format("queue pair {} has received {} messages of the {} that {} has sent",
                     pair.shown.qp_num, pair.received, peer->sent, pair.attributes.dest_qp_num);
}

void destroy_marker(Shim& shim, QueuePair& pair) {
  if (pair.marker_handle == nullptr || pair.is_marker_on_its_way) return;
  shim.real.ibv_destroy_ah(std::exchange(pair.marker_handle, nullptr));
}

void hold_event(CompletionQueue& queue) {
  if (queue.channel == nullptr || !queue.has_missed_event) return;
  queue.has_missed_event = false;
  queue.channel->held.push_back(&queue);
}

}  // namespace

void Shim::hold_all_locks() {
  for (CompletionQueue* const one : queues.all()) one->lock.lock_awake();
  for (QueuePair* const one : pairs.all()) one->lock.lock_awake();
  for (QueuePair* const one : pairs.all()) one->receives.lock.lock_awake();
  for (SharedQueue* const one : shared_queues.all()) one->receives.lock.lock_awake();
}

void Shim::release_all_locks() {
  for (SharedQueue* const one : shared_queues.all()) one->receives.lock.unlock();
  for (QueuePair* const one : pairs.all()) one->receives.lock.unlock();
  for (QueuePair* const one : pairs.all()) one->lock.unlock();
  for (CompletionQueue* const one : queues.all()) one->lock.unlock();
}

Status Shim::publish() {
  std::vector<Record> records;
  for (const Context* const one : contexts.all()) add_ports(*one, records);
  for (const QueuePair* const one : pairs.all()) records.push_back(record_of(*one));
  for (const Region* const one : regions.all()) {
    if (one->shown.rkey == 0) continue;  // some adapters give none to what no other may reach
    Record record;
    record.kind = RecordKind::key;
    record.home = of(one->shown.context).home;
    record.shown = one->shown.rkey;
    record.real = one->real->rkey;
    records.push_back(record);
  }
  const std::size_t bytes = records.size() * sizeof(Record);
  if (::ftruncate(memory_, static_cast<off_t>(kPageSize + bytes)) != 0 ||
      ::pwrite(memory_, records.data(), bytes, kPageSize) != static_cast<ssize_t>(bytes)) {
    return fail(os_error("publishing what verbs the process uses", errno));
  }
  page_->published = records.size();
  return {};
}

Status Shim::read_directory(std::vector<Record>& records) const {
  records.resize(page_->given);
  const std::size_t bytes = records.size() * sizeof(Record);
  if (::pread(memory_, records.data(), bytes, static_cast<off_t>(page_->given_at)) ==
      static_cast<ssize_t>(bytes))
    return {};
  return fail(os_error("reading what verbs the job uses", errno));
}

Status Shim::stop() {
  gate.close();
  hold_all_locks();
  page_->is_stopped = 1;
  return publish();
}

Status Shim::drain() {
  std::vector<Record> records;
  DIAPAUSE_TRY(read_directory(records));
  const Directory peers(records);
  const double end_s = now_s() + kMostDrain_s;
  for (;;) {
    for (CompletionQueue* const one : queues.all()) DIAPAUSE_TRY(take_all(*one));
    std::string missing;
    for (QueuePair* const one : pairs.all()) {
      destroy_marker(*this, *one);
      DIAPAUSE_TRY_ASSIGN(const std::string what, what_is_missing(peers, *one));
      if (!what.empty()) missing = what;
    }
    if (missing.empty()) return {};
    if (now_s() > end_s) return fail(Code::again, missing);
    ::usleep(kPause_us);
  }
}

Status Shim::close() {
  // By now the sends of all have completed. The datagrams that have arrived are taken as well.
  for (CompletionQueue* const one : queues.all())
    (void)take_all(*one);  // drain() has read all of them
  for (Channel* const one : channels.all()) take_events(*this, *one);
  for (CompletionQueue* const one : queues.all()) hold_event(*one);
  for (Channel* const one : channels.all()) {
    if (!one->held.empty()) ring(one->bell);
  }
  for (Context* const one : contexts.all()) take_events(*this, *one);
  page_->is_closed = 1;
  for (Handle* const one : handles.all()) real.ibv_destroy_ah(std::exchange(one->real, nullptr));
  for (QueuePair* const one : pairs.all()) {
    for (const auto& [gid, lid] : one->groups) real.ibv_detach_mcast(one->real, &gid, lid);
    for (ibv_cq* const shown : {one->shown.send_cq, one->shown.recv_cq}) of(shown).pairs.clear();
    real.ibv_destroy_qp(std::exchange(one->real, nullptr));
    one->is_marker_on_its_way = false;
    one->see_what_is_plain(directory);
    destroy_marker(*this, *one);
  }
  for (SharedQueue* const one : shared_queues.all())
    real.ibv_destroy_srq(std::exchange(one->real, nullptr));
  for (CompletionQueue* const one : queues.all())
    real.ibv_destroy_cq(std::exchange(one->real, nullptr));
  for (Channel* const one : channels.all())
    real.ibv_destroy_comp_channel(std::exchange(one->real, nullptr));
  for (Region* const one : regions.all()) real.ibv_dereg_mr(std::exchange(one->real, nullptr));
  for (Domain* const one : domains.all()) real.ibv_dealloc_pd(std::exchange(one->real, nullptr));
  for (Context* const one : contexts.all()) close_real(*this, *one);
  return {};
}

Status Shim::open() {
  for (Context* const one : contexts.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (Domain* const one : domains.all()) {
    one->real = real.ibv_alloc_pd(of(one->shown.context).real);
    if (one->real == nullptr) return fail(os_error("making a protection domain again", errno));
  }
  for (Region* const one : regions.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (Channel* const one : channels.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (CompletionQueue* const one : queues.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (SharedQueue* const one : shared_queues.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (QueuePair* const one : pairs.all()) DIAPAUSE_TRY(open_real(*this, *one));
  return publish();
}

Status Shim::connect() {
  std::vector<Record> records;
  DIAPAUSE_TRY(read_directory(records));
  directory = Directory(records);
  for (Context* const one : contexts.all()) one->local_keys = Numbers();
  for (const Region* const one : regions.all()) {
    if (one->shown.lkey != one->real->lkey)
      of(one->shown.context).local_keys.add(one->shown.lkey, one->real->lkey);
  }
  for (QueuePair* const one : pairs.all()) {
    one->see_what_is_plain(directory);
    one->receives.see_what_is_plain(one->context().local_keys);
  }
  for (SharedQueue* const one : shared_queues.all())
    one->receives.see_what_is_plain(of(one->shown.context).local_keys);
  for (Handle* const one : handles.all()) DIAPAUSE_TRY(open_real(*this, *one));
  for (CompletionQueue* const one : queues.all()) {
    if (!one->is_armed) continue;
    one->real->context->ops.req_notify_cq(one->real, one->is_armed_for_solicited ? 1 : 0);
  }
  for (SharedQueue* const one : shared_queues.all()) DIAPAUSE_TRY(post_again(*one));
  for (QueuePair* const one : pairs.all()) DIAPAUSE_TRY(connect_real(*this, *one));
  page_->is_closed = 0;
  return {};
}

void Shim::go_on() {
  if (page_->is_stopped == 0) return;
  page_->is_stopped = 0;
  release_all_locks();
  gate.open();
}

}  // namespace diapause::fabric
