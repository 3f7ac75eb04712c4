// Provides queue pairs.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

constexpr int kAlways = IBV_QP_STATE;

// Returns the attributes that each change of state needs.
int needed_for(ibv_qp_state state, ibv_qp_type type) {
  const bool is_datagram = type == IBV_QPT_UD;
  const bool is_reliable = type == IBV_QPT_RC;
  if (state == IBV_QPS_INIT) {
    return kAlways | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  }
  if (state == IBV_QPS_RTR) {
    if (is_datagram) return kAlways;
    const int reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return kAlways | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           (is_reliable ? reliable : 0);
  }
  const int reliable =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return kAlways | IBV_QP_SQ_PSN | (is_reliable ? reliable : 0);
}

template <class Field>
void merge(int mask, int bit, const Field& from, Field& to) {
  if ((mask & bit) != 0) to = from;
}

void merge(const ibv_qp_attr& from, int mask, ibv_qp_attr& to) {
  merge(mask, IBV_QP_ACCESS_FLAGS, from.qp_access_flags, to.qp_access_flags);
  merge(mask, IBV_QP_PKEY_INDEX, from.pkey_index, to.pkey_index);
  merge(mask, IBV_QP_PORT, from.port_num, to.port_num);
  merge(mask, IBV_QP_QKEY, from.qkey, to.qkey);
  merge(mask, IBV_QP_AV, from.ah_attr, to.ah_attr);
  merge(mask, IBV_QP_PATH_MTU, from.path_mtu, to.path_mtu);
  merge(mask, IBV_QP_TIMEOUT, from.timeout, to.timeout);
  merge(mask, IBV_QP_RETRY_CNT, from.retry_cnt, to.retry_cnt);
  merge(mask, IBV_QP_RNR_RETRY, from.rnr_retry, to.rnr_retry);
  merge(mask, IBV_QP_RQ_PSN, from.rq_psn, to.rq_psn);
  merge(mask, IBV_QP_MAX_QP_RD_ATOMIC, from.max_rd_atomic, to.max_rd_atomic);
  merge(mask, IBV_QP_MIN_RNR_TIMER, from.min_rnr_timer, to.min_rnr_timer);
  merge(mask, IBV_QP_SQ_PSN, from.sq_psn, to.sq_psn);
  merge(mask, IBV_QP_MAX_DEST_RD_ATOMIC, from.max_dest_rd_atomic, to.max_dest_rd_atomic);
  merge(mask, IBV_QP_DEST_QPN, from.dest_qp_num, to.dest_qp_num);
}

// The attributes for the adapter: with the address and number of the peer that are real.
ibv_qp_attr real_attributes(Shim& shim, QueuePair& pair, const ibv_qp_attr& shown, int mask) {
  ibv_qp_attr real = shown;
  const bool has_address = (mask & IBV_QP_AV) != 0;
  if (!has_address && (mask & IBV_QP_DEST_QPN) == 0) return real;
  const Record* const peer =
      shim.directory.find_pair(address_of(pair.attributes.ah_attr), pair.attributes.dest_qp_num);
  pair.peer_home = peer == nullptr ? 0 : peer->home;
  if (peer != nullptr) real.dest_qp_num = peer->real;
  if (has_address) {
    ibv_ah_attr address = shown.ah_attr;
    if (address.port_num == 0) address.port_num = pair.attributes.port_num;
    const std::uint8_t port = shown.ah_attr.port_num;
    real.ah_attr = fabric::real_attributes(shim, pair.context(), address, pair.peer_home,
                                           peer == nullptr ? 0 : peer->port);
    real.ah_attr.port_num = port;
  }
  return real;
}

int move_to(Shim& shim, QueuePair& pair, ibv_qp_state state) {
  const int mask = needed_for(state, pair.shown.qp_type);
  ibv_qp_attr attributes = real_attributes(shim, pair, pair.attributes, mask);
  attributes.qp_state = state;
  return shim.real.ibv_modify_qp(pair.real, &attributes, mask);
}

void forget_traffic(const Shim& shim, QueuePair& pair) {
  const Holding completions(of(pair.shown.recv_cq).lock);
  const Holding sends(pair.lock);
  pair.signalled = pair.signalled_done = pair.sent = pair.received = 0;
  pair.ends_silently = false;
  pair.posted = pair.retired = 0;
  pair.is_broken = pair.is_marker_on_its_way = false;
  pair.see_what_is_plain(shim.directory);
  const Holding holding(pair.receives.lock);
  pair.receives.forget_all();
}

void attach(QueuePair& pair) {
  for (ibv_cq* const shown : {pair.shown.send_cq, pair.shown.recv_cq}) {
    const Holding holding(of(shown).lock);
    of(shown).pairs.add(pair.real->qp_num, &pair);
  }
}

void detach(QueuePair& pair) {
  for (ibv_cq* const shown : {pair.shown.send_cq, pair.shown.recv_cq}) {
    const Holding holding(of(shown).lock);
    of(shown).pairs.remove(pair.real->qp_num);
  }
}

ibv_qp* create_real(Shim& shim, QueuePair& pair, ibv_qp_init_attr& init) {
  init = pair.init;
  init.qp_context = &pair;
  init.send_cq = of(pair.init.send_cq).real;
  init.recv_cq = of(pair.init.recv_cq).real;
  init.srq = pair.init.srq == nullptr ? nullptr : of(pair.init.srq).real;
  init.cap.max_send_wr += 1;  // there is room for the marker of a drain
  ibv_qp* const real = shim.real.ibv_create_qp(of(pair.shown.pd).real, &init);
  if (real == nullptr) return nullptr;
  pair.post_send = real->context->ops.post_send;
  pair.post_recv = real->context->ops.post_recv;
  return real;
}

}  // namespace

void QueuePair::see_what_is_plain(const Directory& directory) {
  const bool is_trivial = directory.is_trivial();
  plain.posts = !is_trivial || !positions.empty() ? Posts::translated
                : shown.qp_type == IBV_QPT_UD     ? Posts::datagrams
                                                  : Posts::untouched;
  plain.sends = positions.empty() && !is_marker_on_its_way;
  plain.receives = shown.srq == nullptr && (is_trivial || shown.qp_type != IBV_QPT_UD);
}

// Brings the queue pair as far as possible without its peer, which has no number yet.
Status open_real(Shim& shim, QueuePair& pair) {
  ibv_qp_init_attr init{};
  pair.real = create_real(shim, pair, init);
  if (pair.real == nullptr)
    return fail(os_error(fmt::format("making queue pair {} again", pair.shown.qp_num), errno));
  // The locks are held already.
  for (ibv_cq* const shown : {pair.shown.send_cq, pair.shown.recv_cq})
    of(shown).pairs.add(pair.real->qp_num, &pair);
  const int needed = needed_for(IBV_QPS_INIT, pair.shown.qp_type) & ~kAlways;
  if (pair.state == IBV_QPS_RESET || (pair.known & needed) != needed) return {};
  const int error = move_to(shim, pair, IBV_QPS_INIT);
  if (error == 0) return {};
  return fail(os_error(fmt::format("preparing queue pair {} again", pair.shown.qp_num), error));
}

Status connect_real(Shim& shim, QueuePair& pair) {
  const auto known_for = [&](ibv_qp_state state) {
    const int needed = needed_for(state, pair.shown.qp_type) & ~kAlways;
    return (pair.known & needed) == needed;
  };
  const bool is_prepared = pair.state != IBV_QPS_RESET && known_for(IBV_QPS_INIT);
  if (is_prepared) DIAPAUSE_TRY(post_again(pair));
  const bool is_beyond_init = is_prepared && pair.state != IBV_QPS_INIT;
  int error = 0;
  if (is_beyond_init && known_for(IBV_QPS_RTR)) error = move_to(shim, pair, IBV_QPS_RTR);
  const bool may_send = is_beyond_init && pair.state != IBV_QPS_RTR && known_for(IBV_QPS_RTR) &&
                        known_for(IBV_QPS_RTS);
  if (error == 0 && may_send) error = move_to(shim, pair, IBV_QPS_RTS);
  const bool is_in_error =
      pair.state == IBV_QPS_ERR || (pair.is_broken && pair.shown.qp_type != IBV_QPT_UD);
  if (error == 0 && is_in_error) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    error = shim.real.ibv_modify_qp(pair.real, &attributes, IBV_QP_STATE);
  }
  for (auto& [gid, lid] : pair.groups) {
    if (error == 0) error = shim.real.ibv_attach_mcast(pair.real, &gid, lid);
  }
  if (error == 0) return {};
  return fail(os_error(fmt::format("connecting queue pair {} again", pair.shown.qp_num), error));
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_VERB ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* init) {
  Shim& shim = Shim::get();
  if (!is_ours(domain->context)) return shim.real.ibv_create_qp(domain, init);
  const bool is_known =
      init->qp_type == IBV_QPT_RC || init->qp_type == IBV_QPT_UC || init->qp_type == IBV_QPT_UD;
  if (!is_known) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const Passage passage(shim.gate);
  auto pair = std::make_unique<QueuePair>();
  pair->shown.context = domain->context;
  pair->shown.qp_context = init->qp_context;
  pair->shown.pd = domain;
  pair->shown.send_cq = init->send_cq;
  pair->shown.recv_cq = init->recv_cq;
  pair->shown.srq = init->srq;
  pair->shown.qp_type = init->qp_type;
  pair->init = *init;
  ibv_qp_init_attr real{};
  std::vector<ibv_qp*> set_aside;  // with numbers by which programs know others
  while ((pair->real = create_real(shim, *pair, real)) != nullptr &&
         shim.directory.has_pair(pair->real->qp_num)) {
    set_aside.push_back(pair->real);
  }
  const int error = errno;
  for (ibv_qp* const one : set_aside) shim.real.ibv_destroy_qp(one);
  errno = error;
  if (pair->real == nullptr) return nullptr;
  init->cap = real.cap;
  init->cap.max_send_wr -= 1;
  pair->init.cap = init->cap;
  pair->shown.qp_num = pair->real->qp_num;
  pair->shown.handle = pair->real->handle;
  ::pthread_mutex_init(&pair->shown.mutex, nullptr);
  ::pthread_cond_init(&pair->shown.cond, nullptr);
  const bool has_receives = init->srq == nullptr;
  pair->receives.prepare(has_receives ? real.cap.max_recv_wr : 0,
                         has_receives ? real.cap.max_recv_sge : 0);
  pair->receives.see_what_is_plain(pair->context().local_keys);
  pair->see_what_is_plain(shim.directory);
  attach(*pair);
  shim.pairs.add(pair.get());
  return &pair.release()->shown;
}

DIAPAUSE_VERB int ibv_modify_qp(ibv_qp* shown, ibv_qp_attr* attributes, int mask) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_modify_qp(shown, attributes, mask);
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP)) != 0) return EOPNOTSUPP;
  const Passage passage(shim.gate);
  QueuePair& pair = of(shown);
  const ibv_qp_attr before = pair.attributes;
  merge(*attributes, mask, pair.attributes);
  ibv_qp_attr real = real_attributes(shim, pair, *attributes, mask);
  const int error = shim.real.ibv_modify_qp(pair.real, &real, mask);
  if (error != 0) {
    pair.attributes = before;
    return error;
  }
  pair.known |= mask;
  if ((mask & IBV_QP_STATE) == 0) return 0;
  shown->state = pair.state = attributes->qp_state;
  if (pair.state == IBV_QPS_RESET) {
    pair.known = 0;
    forget_traffic(shim, pair);
  }
  return 0;
}

DIAPAUSE_VERB int ibv_query_qp(ibv_qp* shown, ibv_qp_attr* attributes, int mask,
                               ibv_qp_init_attr* init) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_query_qp(shown, attributes, mask, init);
  const Passage passage(shim.gate);
  QueuePair& pair = of(shown);
  const int error = shim.real.ibv_query_qp(pair.real, attributes, mask, init);
  if (error != 0) return error;
  if ((pair.known & IBV_QP_DEST_QPN) != 0) attributes->dest_qp_num = pair.attributes.dest_qp_num;
  if ((pair.known & IBV_QP_AV) != 0) attributes->ah_attr = pair.attributes.ah_attr;
  attributes->cap = pair.init.cap;
  const ibv_qp_init_attr asked = pair.init;
  *init = asked;
  shown->state = attributes->qp_state;
  return 0;
}

DIAPAUSE_VERB int ibv_destroy_qp(ibv_qp* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_destroy_qp(shown);
  const Passage passage(shim.gate);
  QueuePair& pair = of(shown);
  detach(pair);
  const int error = shim.real.ibv_destroy_qp(pair.real);
  if (error != 0) {
    attach(pair);
    return error;
  }
  std::erase_if(pair.context().held_events, [&](const ibv_async_event& one) {
    const bool is_of_pair =
        one.event_type == IBV_EVENT_QP_FATAL || one.event_type == IBV_EVENT_QP_REQ_ERR ||
        one.event_type == IBV_EVENT_QP_ACCESS_ERR || one.event_type == IBV_EVENT_COMM_EST ||
        one.event_type == IBV_EVENT_SQ_DRAINED || one.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return is_of_pair && one.element.qp == shown;
  });
  shim.pairs.remove(&pair);
  delete &pair;
  return 0;
}

DIAPAUSE_VERB int ibv_attach_mcast(ibv_qp* shown, const ibv_gid* gid, std::uint16_t lid) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_attach_mcast(shown, gid, lid);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_attach_mcast(of(shown).real, gid, lid);
  if (error == 0) of(shown).groups.emplace_back(*gid, lid);
  return error;
}

DIAPAUSE_VERB int ibv_detach_mcast(ibv_qp* shown, const ibv_gid* gid, std::uint16_t lid) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_detach_mcast(shown, gid, lid);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_detach_mcast(of(shown).real, gid, lid);
  if (error != 0) return error;
  std::erase_if(of(shown).groups, [&](const auto& one) {
    return one.second == lid && std::memcmp(one.first.raw, gid->raw, sizeof gid->raw) == 0;
  });
  return 0;
}

DIAPAUSE_VERB int ibv_query_ece(ibv_qp* shown, ibv_ece* options) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_query_ece(shown, options);
  return EOPNOTSUPP;
}

DIAPAUSE_VERB int ibv_set_ece(ibv_qp* shown, ibv_ece* options) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_set_ece(shown, options);
  return options->vendor_id == 0 ? 0 : EOPNOTSUPP;
}

DIAPAUSE_VERB int ibv_query_qp_data_in_order(ibv_qp* shown, ibv_wr_opcode opcode,
                                             std::uint32_t flags) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_query_qp_data_in_order(shown, opcode, flags);
  return 0;  // another adapter may order it otherwise
}
