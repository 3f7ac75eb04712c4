// What programs see of librdmacm: the layout of its structures, by which they were compiled. It is
// declared here because its header is not there everywhere where that of libibverbs is.
#pragma once

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace diapause::fabric {

enum class EventKind : int {
  address_resolved,
  address_error,
  route_resolved,
  route_error,
  connect_request,
  connect_response,
  connect_error,
  unreachable,
  rejected,
  established,
  disconnected,
  device_removal,
  multicast_join,
  multicast_error,
  address_change,
  timewait_exit,
};

inline constexpr int kSpaceTcp = 0x0106, kSpaceUdp = 0x0111;
inline constexpr std::uint32_t kDatagramKey = 0x01234567;  // of all queue pairs of the kind UD
inline constexpr std::uint8_t kMostThereAre = 0xff;        // in place of a number of resources

union AnyAddress {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
  sockaddr_storage storage;
};

struct Route {
  AnyAddress source, destination;
  ibv_gid source_gid, destination_gid;
  __be16 partition_key;
  ibv_sa_path_rec* paths;
  int path_count;
};

struct EventChannel {
  int fd;
};

struct CmEvent;

struct CmId {
  ibv_context* verbs;
  EventChannel* channel;
  void* context;
  ibv_qp* pair;
  Route route;
  int space;
  std::uint8_t port_number;
  CmEvent* event;  // that of the last call that waited
  ibv_comp_channel* send_channel;
  ibv_cq* send_queue;
  ibv_comp_channel* receive_channel;
  ibv_cq* receive_queue;
  ibv_srq* shared_queue;
  ibv_pd* domain;
  ibv_qp_type pair_kind;
};

struct ConnectionParameters {
  const void* data;
  std::uint8_t data_length;
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::uint8_t flow_control;
  std::uint8_t retry_count;
  std::uint8_t rnr_retry_count;
  // What follows has no meaning if the identifier has a queue pair.
  std::uint8_t has_shared_queue;
  std::uint32_t pair;
};

struct DatagramParameters {
  const void* data;
  std::uint8_t data_length;
  ibv_ah_attr address;
  std::uint32_t pair;
  std::uint32_t key;
};

struct CmEvent {
  CmId* id;
  CmId* listener;
  EventKind kind;
  int status;
  union {
    ConnectionParameters connection;
    DatagramParameters datagram;
  } parameters;
};

inline constexpr int kPassive = 1, kNumericHost = 2, kFamilyGiven = 8;

struct AddressInfo {
  int flags;
  int family;
  int pair_kind;
  int space;
  socklen_t source_length;
  socklen_t destination_length;
  sockaddr* source;
  sockaddr* destination;
  char* source_name;
  char* destination_name;
  std::size_t route_length;
  void* route;
  std::size_t data_length;
  void* data;
  AddressInfo* next;
};

inline constexpr int kOptionsOfIds = 0, kTypeOfService = 0, kAckTimeout = 3;

}  // namespace diapause::fabric
