// What is made of the other calls: endpoints with their queue pair, names, options, and what there
// is not.
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fabric/manager/manager.hpp"

using namespace diapause::fabric;

extern "C" {
int rdma_create_id(EventChannel* channel, CmId** id, void* context, int space);
int rdma_destroy_id(CmId* id);
int rdma_bind_addr(CmId* id, sockaddr* address);
int rdma_resolve_addr(CmId* id, sockaddr* source, sockaddr* destination, int timeout_ms);
int rdma_resolve_route(CmId* id, int timeout_ms);
void rdma_freeaddrinfo(AddressInfo* info);
}

namespace diapause::fabric {
namespace {

constexpr int kResolve_ms = 2000;

sockaddr* copy_of(const sockaddr* address, socklen_t length) {
  void* const made = std::malloc(length);
  if (made != nullptr) std::memcpy(made, address, length);
  return static_cast<sockaddr*>(made);
}

int error_of_names(int code) {
  if (code == EAI_SYSTEM) return errno;
  if (code == EAI_MEMORY) return ENOMEM;
  return code == EAI_AGAIN ? EAGAIN : ENODATA;
}

// Returns an error, or adds the address of a name.
int resolve_name(const char* node, const char* service, const AddressInfo& hints,
                 AddressInfo& info) {
  addrinfo wanted{};
  wanted.ai_socktype = info.pair_kind == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
  if ((hints.flags & kPassive) != 0) wanted.ai_flags |= AI_PASSIVE;
  if ((hints.flags & kNumericHost) != 0) wanted.ai_flags |= AI_NUMERICHOST;
  if ((hints.flags & kFamilyGiven) != 0) wanted.ai_family = hints.family;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(node, service, &wanted, &found); code != 0)
    return error_of_names(code);
  const bool is_passive = (hints.flags & kPassive) != 0;
  (is_passive ? info.source : info.destination) = copy_of(found->ai_addr, found->ai_addrlen);
  (is_passive ? info.source_length : info.destination_length) = found->ai_addrlen;
  info.family = found->ai_family;
  ::freeaddrinfo(found);
  return 0;
}

int find_addresses(const char* node, const char* service, const AddressInfo* given,
                   AddressInfo& info) {
  const AddressInfo none{};
  const AddressInfo& hints = given == nullptr ? none : *given;
  if (hints.family != 0 && hints.family != AF_INET && hints.family != AF_INET6) return EOPNOTSUPP;
  const bool is_datagram = hints.pair_kind == IBV_QPT_UD || hints.space == kSpaceUdp;
  info.flags = hints.flags;
  info.pair_kind = is_datagram ? IBV_QPT_UD : hints.pair_kind != 0 ? hints.pair_kind : IBV_QPT_RC;
  info.space = is_datagram ? kSpaceUdp : hints.space != 0 ? hints.space : kSpaceTcp;
  if (node != nullptr || service != nullptr) {
    if (const int error = resolve_name(node, service, hints, info); error != 0) return error;
  } else if (hints.destination_length > 0) {
    info.destination = copy_of(hints.destination, hints.destination_length);
    info.destination_length = hints.destination_length;
    info.family = hints.destination->sa_family;
  } else if (given == nullptr) {
    return EINVAL;
  }
  if (info.source == nullptr && hints.source_length > 0) {
    info.source = copy_of(hints.source, hints.source_length);
    info.source_length = hints.source_length;
    if (info.family == 0) info.family = hints.source->sa_family;
  }
  return 0;
}

int create_endpoint(CmId& id, const AddressInfo& info, ibv_pd* domain, ibv_qp_init_attr* init) {
  id.pair_kind = static_cast<ibv_qp_type>(info.pair_kind);
  if ((info.flags & kPassive) != 0) {
    if (rdma_bind_addr(&id, info.source) != 0) return errno;
    if (domain != nullptr) id.domain = domain;
    if (init != nullptr) of(&id).pair_for_requests = *init;
    return 0;
  }
  if (rdma_resolve_addr(&id, info.source, info.destination, kResolve_ms) != 0 ||
      rdma_resolve_route(&id, kResolve_ms) != 0)
    return errno;
  if (init != nullptr) {
    init->qp_type = id.pair_kind;
    if (const int error = create_pair(of(&id), domain, *init); error != 0) return error;
  }
  const auto* const data = static_cast<const std::uint8_t*>(info.data);
  if (data != nullptr)
    of(&id).data_for_connect.assign(data, data + std::min(info.data_length, kMostPrivateData));
  return 0;
}

int take_request(CmId& listener, CmId** id) {
  Identifier& door = of(&listener);
  if (!door.is_waiting || door.phase != Phase::listening) return EINVAL;
  if (const int error = complete(door); error != 0) return error;
  if (listener.event->kind != EventKind::connect_request) return EINVAL;
  CmId* const made = listener.event->id;
  if (door.pair_for_requests) {
    ibv_qp_init_attr init = *door.pair_for_requests;
    init.qp_type = listener.pair_kind;
    if (const int error = create_pair(of(made), listener.domain, init); error != 0) {
      rdma_destroy_id(made);
      return error;
    }
  }
  *id = made;
  made->event = std::exchange(listener.event, nullptr);
  return 0;
}

}  // namespace
}  // namespace diapause::fabric

DIAPAUSE_RDMA int rdma_getaddrinfo(const char* node, const char* service, const AddressInfo* hints,
                                   AddressInfo** info) {
  auto* const made = static_cast<AddressInfo*>(std::calloc(1, sizeof(AddressInfo)));
  if (made == nullptr) return answer(ENOMEM);
  const int error = find_addresses(node, service, hints, *made);
  if (error != 0) rdma_freeaddrinfo(made);
  if (error == 0) *info = made;
  return answer(error);
}

DIAPAUSE_RDMA void rdma_freeaddrinfo(AddressInfo* info) {
  while (info != nullptr) {
    AddressInfo* const next = info->next;
    std::free(info->source);
    std::free(info->destination);
    std::free(info);
    info = next;
  }
}

DIAPAUSE_RDMA int rdma_create_ep(CmId** id, AddressInfo* info, ibv_pd* domain,
                                 ibv_qp_init_attr* init) {
  CmId* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, info->space) != 0) return -1;
  const int error = create_endpoint(*made, *info, domain, init);
  if (error != 0) rdma_destroy_id(made);
  if (error == 0) *id = made;
  return answer(error);
}

DIAPAUSE_RDMA void rdma_destroy_ep(CmId* id) {
  if (id->pair != nullptr) destroy_pair(of(id));
  if (id->shared_queue != nullptr) ::ibv_destroy_srq(std::exchange(id->shared_queue, nullptr));
  rdma_destroy_id(id);
}

DIAPAUSE_RDMA int rdma_get_request(CmId* listener, CmId** id) {
  return answer(take_request(*listener, id));
}

// Options of which nothing depends on us are taken without effect.
DIAPAUSE_RDMA int rdma_set_option(CmId* shown, int level, int option, void* value,
                                  std::size_t length) {
  const std::lock_guard lock(Manager::get().mutex);
  if (level != kOptionsOfIds) return answer(ENOSYS);
  if (option != kTypeOfService && option != kAckTimeout) return 0;
  if (length != 1) return answer(EINVAL);
  Identifier& id = of(shown);
  (option == kTypeOfService ? id.service_type : id.ack_timeout) =
      *static_cast<const std::uint8_t*>(value);
  return 0;
}

DIAPAUSE_RDMA int rdma_set_local_ece(CmId*, ibv_ece* options) {
  return answer(options == nullptr || options->vendor_id != 0 ? EOPNOTSUPP : 0);
}

DIAPAUSE_RDMA int rdma_get_remote_ece(CmId*, ibv_ece* options) {
  if (options == nullptr) return answer(EINVAL);
  *options = {};
  return 0;
}

// ---- what there is not

DIAPAUSE_RDMA int rdma_join_multicast(CmId*, sockaddr*, void*) { return answer(EOPNOTSUPP); }
DIAPAUSE_RDMA int rdma_join_multicast_ex(CmId*, void*, void*) { return answer(EOPNOTSUPP); }
DIAPAUSE_RDMA int rdma_leave_multicast(CmId*, sockaddr*) { return answer(EOPNOTSUPP); }

// Sockets over RDMA: no program gets one, so the other calls have nothing to work on.
// clang-format off
#define DIAPAUSE_NO_SOCKETS(X) \
  X(rsocket) X(rbind) X(rlisten) X(raccept) X(rconnect) X(rshutdown) X(rclose) X(rgetpeername) \
  X(rgetsockname) X(rsetsockopt) X(rgetsockopt) X(rfcntl) X(rpoll) X(rselect) X(riounmap)
#define DIAPAUSE_NO_TRANSFERS(X) \
  X(rrecv) X(rrecvfrom) X(rrecvmsg) X(rread) X(rreadv) X(rsend) X(rsendto) X(rsendmsg) X(rwrite) \
  X(rwritev) X(riomap) X(riowrite)
// clang-format on
#define DIAPAUSE_NO_CALL(name) \
  DIAPAUSE_RDMA int name() { return answer(EOPNOTSUPP); }
#define DIAPAUSE_NO_TRANSFER(name) \
  DIAPAUSE_RDMA long name() { return answer(EOPNOTSUPP); }
DIAPAUSE_NO_SOCKETS(DIAPAUSE_NO_CALL)
DIAPAUSE_NO_TRANSFERS(DIAPAUSE_NO_TRANSFER)
