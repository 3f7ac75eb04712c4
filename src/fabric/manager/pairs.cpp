// The queue pairs of identifiers, and the queues that are made with them.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/manager/manager.hpp"

namespace diapause::fabric {
namespace {

constexpr std::uint8_t kHops = 64;
constexpr std::uint8_t kDefaultTimeout = 19;  // 4.096 us * 2^19: 2.1 s until a packet is sent again

int add_for_reset(const Identifier& id, ibv_qp_attr& attributes) {
  attributes.pkey_index = 0;
  attributes.port_num = id.shown.port_number;
  if (id.is_datagram()) {
    attributes.qkey = kDatagramKey;
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  }
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (id.shown.pair_kind == IBV_QPT_RC)
    attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

int add_for_receiving(const Identifier& id, ibv_qp_attr& attributes) {
  if (id.is_datagram()) return 0;
  attributes.ah_attr = address_of_other(id);
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(id.own.mtu, id.other.mtu));
  attributes.dest_qp_num = id.other.pair;
  attributes.rq_psn = id.other.first_packet;
  const int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (id.shown.pair_kind != IBV_QPT_RC) return mask;
  attributes.max_dest_rd_atomic =
      id.is_active ? std::min(id.own.responder_resources, id.other.initiator_depth)
                   : id.own.responder_resources;
  attributes.min_rnr_timer = 0;
  return mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int add_for_sending(const Identifier& id, ibv_qp_attr& attributes) {
  attributes.sq_psn = id.own.first_packet;
  if (id.shown.pair_kind != IBV_QPT_RC) return IBV_QP_SQ_PSN;
  attributes.timeout = id.ack_timeout != 0 ? id.ack_timeout : kDefaultTimeout;
  attributes.retry_cnt = id.is_active ? id.own.retry_count : id.other.retry_count & 7;
  attributes.rnr_retry = id.other.rnr_retry_count & 7;
  attributes.max_rd_atomic = id.is_active
                                 ? std::min(id.own.initiator_depth, id.other.responder_resources)
                                 : id.own.initiator_depth;
  return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
}

void destroy_queues(Identifier& id) {
  CmId& shown = id.shown;
  if (shown.receive_queue != nullptr) ::ibv_destroy_cq(std::exchange(shown.receive_queue, nullptr));
  if (shown.receive_channel != nullptr)
    ::ibv_destroy_comp_channel(std::exchange(shown.receive_channel, nullptr));
  if (shown.send_queue != nullptr) ::ibv_destroy_cq(std::exchange(shown.send_queue, nullptr));
  if (shown.send_channel != nullptr)
    ::ibv_destroy_comp_channel(std::exchange(shown.send_channel, nullptr));
}

int create_queue(Identifier& id, std::uint32_t entries, ibv_comp_channel*& channel,
                 ibv_cq*& queue) {
  channel = ::ibv_create_comp_channel(id.shown.verbs);
  if (channel == nullptr) return errno;
  queue = ::ibv_create_cq(id.shown.verbs, static_cast<int>(entries), &id.shown, channel, 0);
  return queue == nullptr ? errno : 0;
}

// Makes the completion queues that the program has not given.
int create_queues(Identifier& id, const ibv_qp_init_attr_ex& init) {
  int error = 0;
  if (init.recv_cq == nullptr && init.cap.max_recv_wr > 0) {
    error =
        create_queue(id, init.cap.max_recv_wr, id.shown.receive_channel, id.shown.receive_queue);
  }
  if (error == 0 && init.send_cq == nullptr && init.cap.max_send_wr > 0)
    error = create_queue(id, init.cap.max_send_wr, id.shown.send_channel, id.shown.send_queue);
  if (error != 0) destroy_queues(id);
  return error;
}

int create_extended(Identifier& id, ibv_qp_init_attr_ex& init) {
  if (id.shown.verbs == nullptr || id.shown.pair != nullptr) return EINVAL;
  if ((init.comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    init.comp_mask |= IBV_QP_INIT_ATTR_PD;
    init.pd = id.shown.domain;
  }
  if (init.pd == nullptr || init.pd->context != id.shown.verbs) return EINVAL;
  if (init.srq == nullptr) init.srq = id.shown.shared_queue;
  if (const int error = create_queues(id, init); error != 0) return error;
  if (init.send_cq == nullptr) init.send_cq = id.shown.send_queue;
  if (init.recv_cq == nullptr) init.recv_cq = id.shown.receive_queue;
  // A queue pair that only sends or only receives needs both queues all the same.
  if (init.send_cq == nullptr) init.send_cq = init.recv_cq;
  if (init.recv_cq == nullptr) init.recv_cq = init.send_cq;
  id.shown.pair_kind = init.qp_type;
  id.shown.pair = ::ibv_create_qp_ex(id.shown.verbs, &init);
  int error = id.shown.pair == nullptr ? errno : move_pair(id, IBV_QPS_INIT);
  if (error == 0 && id.is_datagram()) error = let_pair_communicate(id);
  if (error != 0) destroy_pair(id);
  return error;
}

int create_shared_queue(Identifier& id, ibv_pd* domain, ibv_srq_init_attr& init) {
  if (id.shown.shared_queue != nullptr || id.shown.verbs == nullptr) return EINVAL;
  ibv_pd* const used = domain == nullptr ? id.shown.domain : domain;
  if (used == nullptr) return EINVAL;
  id.shown.shared_queue = ::ibv_create_srq(used, &init);
  return id.shown.shared_queue == nullptr ? errno : 0;
}

}  // namespace

ibv_ah_attr address_of_other(const Identifier& id) {
  ibv_ah_attr address{};
  address.port_num = id.shown.port_number;
  const bool is_far =
      !std::equal(id.other.gid.begin(), id.other.gid.begin() + 8, id.own.gid.begin());
  if (!id.place.is_ethernet) address.dlid = id.other.lid;
  if (!id.place.is_ethernet && !is_far) return address;
  address.is_global = 1;
  std::copy(id.other.gid.begin(), id.other.gid.end(), address.grh.dgid.raw);
  address.grh.sgid_index = id.place.gid_index;
  address.grh.hop_limit = kHops;
  address.grh.traffic_class = id.service_type;
  return address;
}

int attributes_for(const Identifier& id, ibv_qp_attr& attributes, int& mask) {
  const ibv_qp_state state = attributes.qp_state;
  mask = IBV_QP_STATE;
  if (state == IBV_QPS_INIT) mask |= add_for_reset(id, attributes);
  if (state == IBV_QPS_RTR) mask |= add_for_receiving(id, attributes);
  if (state == IBV_QPS_RTS) mask |= add_for_sending(id, attributes);
  return state == IBV_QPS_INIT || state == IBV_QPS_RTR || state == IBV_QPS_RTS ? 0 : EINVAL;
}

int move_pair(Identifier& id, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (const int error = attributes_for(id, attributes, mask); error != 0) return error;
  return ::ibv_modify_qp(id.shown.pair, &attributes, mask);
}

int let_pair_communicate(Identifier& id) {
  const int error = move_pair(id, IBV_QPS_RTR);
  return error != 0 ? error : move_pair(id, IBV_QPS_RTS);
}

int create_pair(Identifier& id, ibv_pd* domain, ibv_qp_init_attr& init) {
  ibv_qp_init_attr_ex all{};
  all.qp_context = init.qp_context;
  all.send_cq = init.send_cq;
  all.recv_cq = init.recv_cq;
  all.srq = init.srq;
  all.cap = init.cap;
  all.qp_type = init.qp_type;
  all.sq_sig_all = init.sq_sig_all;
  all.comp_mask = IBV_QP_INIT_ATTR_PD;
  all.pd = domain == nullptr ? id.shown.domain : domain;
  const int error = create_extended(id, all);
  if (error == 0) init.cap = all.cap;
  return error;
}

void destroy_pair(Identifier& id) {
  if (id.shown.pair != nullptr) ::ibv_destroy_qp(std::exchange(id.shown.pair, nullptr));
  destroy_queues(id);
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

// These calls may wait for others of the adapter, so the lock is not held.
DIAPAUSE_RDMA int rdma_create_qp(CmId* shown, ibv_pd* domain, ibv_qp_init_attr* init) {
  return answer(create_pair(of(shown), domain, *init));
}

DIAPAUSE_RDMA int rdma_create_qp_ex(CmId* shown, ibv_qp_init_attr_ex* init) {
  return answer(create_extended(of(shown), *init));
}

DIAPAUSE_RDMA void rdma_destroy_qp(CmId* shown) { destroy_pair(of(shown)); }

DIAPAUSE_RDMA int rdma_create_srq(CmId* shown, ibv_pd* domain, ibv_srq_init_attr* init) {
  return answer(create_shared_queue(of(shown), domain, *init));
}

DIAPAUSE_RDMA int rdma_create_srq_ex(CmId* shown, ibv_srq_init_attr_ex* init) {
  const bool is_plain =
      (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || init->srq_type == IBV_SRQT_BASIC;
  if (!is_plain) return answer(EOPNOTSUPP);
  ibv_srq_init_attr plain{init->srq_context, init->attr};
  const bool has_domain = (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0;
  return answer(create_shared_queue(of(shown), has_domain ? init->pd : nullptr, plain));
}

DIAPAUSE_RDMA void rdma_destroy_srq(CmId* shown) {
  ::ibv_destroy_srq(std::exchange(shown->shared_queue, nullptr));
}

DIAPAUSE_RDMA int rdma_init_qp_attr(CmId* shown, ibv_qp_attr* attributes, int* mask) {
  const std::lock_guard lock(Manager::get().mutex);
  if (shown->verbs == nullptr) return answer(EINVAL);
  return answer(attributes_for(of(shown), *attributes, *mask));
}
