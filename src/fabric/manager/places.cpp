// Finds the adapter, port and GID that belong to an internet address.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fabric/manager/manager.hpp"

// The shim has it.
extern "C" __attribute__((weak)) int diapause_verbs_present_gid(ibv_gid* gid);

namespace diapause::fabric {
namespace {

constexpr std::size_t kMostGids = 1024;
constexpr std::size_t kBytesOfIpoib = 20;  // of a hardware address, whose last 16 are a GID

struct Adapter {
  ibv_device* device = nullptr;
  ibv_context* verbs = nullptr;
  ibv_pd* domain = nullptr;
};

// Adapters are opened when an address is looked for first, and stay open, as with librdmacm.
std::vector<Adapter>& adapters() {
  static auto* const all = new std::vector<Adapter>;
  int count = 0;
  ibv_device** const list = all->empty() ? ::ibv_get_device_list(&count) : nullptr;
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (ibv_context* const verbs = ::ibv_open_device(list[i])) all->push_back({list[i], verbs});
  }
  if (list != nullptr) ::ibv_free_device_list(list);
  return *all;
}

ibv_gid to_ibv(const Gid& gid) {
  ibv_gid made{};
  std::memcpy(made.raw, gid.data(), gid.size());
  return made;
}

bool is_same(const ibv_gid& one, const ibv_gid& other) {
  return std::memcmp(one.raw, other.raw, sizeof one.raw) == 0;
}

// Calls `use` with every GID of every port in use, until that returns true.
template <class Use>
bool any_gid(const Use& use) {
  std::vector<ibv_gid_entry> entries(kMostGids);
  for (Adapter& adapter : adapters()) {
    const ssize_t count = ::ibv_query_gid_table(adapter.verbs, entries.data(), entries.size(), 0);
    for (ssize_t i = 0; i < count; ++i) {
      const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
      const auto number = static_cast<std::uint8_t>(entry.port_num);
      ibv_port_attr port{};
      const bool is_in_use = ibv_query_port(adapter.verbs, number, &port) == 0 &&
                             port.state == IBV_PORT_ACTIVE && entry.gid_index <= UINT8_MAX;
      if (is_in_use && use(adapter, number, port, entry)) return true;
    }
  }
  return false;
}

Place make_place(Adapter& adapter, std::uint8_t number, const ibv_port_attr& port,
                 const ibv_gid_entry& entry) {
  if (adapter.domain == nullptr) adapter.domain = ::ibv_alloc_pd(adapter.verbs);
  Place place;
  place.verbs = adapter.verbs;
  place.domain = adapter.domain;
  place.port = number;
  place.gid_index = static_cast<std::uint8_t>(entry.gid_index);
  place.lid = port.lid;
  place.mtu = port.active_mtu;
  place.is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  place.gid = entry.gid;
  return place;
}

bool is_same_host(const AnyAddress& one, const sockaddr& other) {
  if (one.any.sa_family != other.sa_family) return false;
  if (other.sa_family == AF_INET)
    return one.four.sin_addr.s_addr == reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  return std::memcmp(&one.six.sin6_addr, &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr,
                     sizeof one.six.sin6_addr) == 0;
}

// Returns whether an interface of this machine has the address. After a restart elsewhere a program
// is told the addresses that it knows, which none has.
bool is_present(const AnyAddress& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return true;
  bool is_found = false;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    is_found = is_found || (one->ifa_addr != nullptr && is_same_host(address, *one->ifa_addr));
  ::freeifaddrs(all);
  return is_found;
}

// Returns the GID of the port of InfiniBand whose network interface has the address.
std::optional<ibv_gid> gid_of_interface(const AnyAddress& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  std::string name;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && is_same_host(address, *one->ifa_addr)) name = one->ifa_name;
  }
  std::optional<ibv_gid> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET || name != one->ifa_name)
      continue;
    const auto& link = reinterpret_cast<const sockaddr_ll&>(*one->ifa_addr);
    if (link.sll_halen != kBytesOfIpoib) continue;
    // The address is longer than the field that the header declares for it.
    const char* const hardware =
        reinterpret_cast<const char*>(one->ifa_addr) + offsetof(sockaddr_ll, sll_addr);
    found.emplace();
    std::memcpy(found->raw, hardware + kBytesOfIpoib - sizeof found->raw, sizeof found->raw);
  }
  ::freeifaddrs(all);
  return found;
}

// Several GIDs of a port may be one address, for several kinds of packets: those that can be routed
// come first.
std::optional<Place> find_by_gid(const ibv_gid& gid) {
  std::optional<Place> best;
  any_gid([&](Adapter& adapter, std::uint8_t number, const ibv_port_attr& port,
              const ibv_gid_entry& entry) {
    if (!is_same(entry.gid, gid)) return false;
    const bool is_best = entry.gid_type != IBV_GID_TYPE_ROCE_V1;
    if (is_best || !best) best = make_place(adapter, number, port, entry);
    return is_best;
  });
  return best;
}

}  // namespace

std::optional<Place> find_place(const AnyAddress& address) {
  if (auto place = find_by_gid(gid_of(address))) return place;
  ibv_gid present = gid_of(address);
  if (diapause_verbs_present_gid != nullptr && diapause_verbs_present_gid(&present) != 0) {
    if (auto place = find_by_gid(present)) return place;
  }
  if (const auto gid = gid_of_interface(address)) return find_by_gid(*gid);
  return is_present(address) ? std::nullopt : any_place({});
}

std::optional<Place> any_place(const Gid& gid) {
  if (auto place = find_by_gid(to_ibv(gid))) return place;
  std::optional<Place> found;
  any_gid([&](Adapter& adapter, std::uint8_t number, const ibv_port_attr& port,
              const ibv_gid_entry& entry) {
    const bool is_local = entry.gid.raw[0] == 0xfe && port.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (!is_local || !found) found = make_place(adapter, number, port, entry);
    return !is_local;
  });
  return found;
}

void put(Identifier& id, const Place& place) {
  id.shown.verbs = place.verbs;
  id.shown.port_number = place.port;
  id.shown.domain = place.domain;
  id.shown.route.source_gid = place.gid;
  id.place = place;
}

int find_source(const AnyAddress& destination, AnyAddress& source) {
  const int probe = ::socket(destination.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  AnyAddress to = destination;
  if (port_of(to) == 0) set_port(to, 1);  // nothing is sent
  socklen_t length = sizeof source.storage;
  const bool is_found = ::connect(probe, &to.any, length_of(to)) == 0 &&
                        ::getsockname(probe, &source.any, &length) == 0;
  const int error = is_found ? 0 : errno;
  ::close(probe);
  return error;
}

socklen_t length_of(const AnyAddress& address) {
  return address.any.sa_family == AF_INET ? sizeof address.four : sizeof address.six;
}

bool is_any(const AnyAddress& address) {
  if (address.any.sa_family == AF_INET) return address.four.sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&address.six.sin6_addr);
}

bool is_within_machine(const AnyAddress& address) {
  if (is_any(address)) return true;
  if (address.any.sa_family == AF_INET)
    return ntohl(address.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr);
}

std::uint16_t port_of(const AnyAddress& address) {
  if (address.any.sa_family == AF_INET) return ntohs(address.four.sin_port);
  return address.any.sa_family == AF_INET6 ? ntohs(address.six.sin6_port) : std::uint16_t{0};
}

void set_port(AnyAddress& address, std::uint16_t port) {
  (address.any.sa_family == AF_INET ? address.four.sin_port : address.six.sin6_port) = htons(port);
}

Endpoint endpoint_of(const AnyAddress& address) {
  Endpoint made;
  made.family = address.any.sa_family == AF_INET ? 4 : 6;
  if (made.family == 4) {
    std::memcpy(made.host.data(), &address.four.sin_addr, sizeof address.four.sin_addr);
  } else {
    std::memcpy(made.host.data(), &address.six.sin6_addr, sizeof address.six.sin6_addr);
  }
  made.port = port_of(address);
  return made;
}

AnyAddress address_of(const Endpoint& endpoint) {
  AnyAddress made{};
  std::memset(&made, 0, sizeof made);
  if (endpoint.family == 4) {
    made.any.sa_family = AF_INET;
    std::memcpy(&made.four.sin_addr, endpoint.host.data(), sizeof made.four.sin_addr);
  } else {
    made.any.sa_family = AF_INET6;
    std::memcpy(&made.six.sin6_addr, endpoint.host.data(), sizeof made.six.sin6_addr);
  }
  set_port(made, endpoint.port);
  return made;
}

// A GID of an Ethernet port is its address of IPv6, or its mapped one of IPv4.
ibv_gid gid_of(const AnyAddress& address) {
  ibv_gid gid{};
  if (address.any.sa_family == AF_INET) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &address.four.sin_addr, sizeof address.four.sin_addr);
  } else {
    std::memcpy(gid.raw, &address.six.sin6_addr, sizeof gid.raw);
  }
  return gid;
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_RDMA ibv_context** rdma_get_devices(int* count) {
  const std::lock_guard lock(Manager::get().mutex);
  const std::vector<Adapter>& all = adapters();
  auto** const list = static_cast<ibv_context**>(std::calloc(all.size() + 1, sizeof(ibv_context*)));
  for (std::size_t i = 0; list != nullptr && i < all.size(); ++i) list[i] = all[i].verbs;
  if (count != nullptr) *count = list == nullptr ? 0 : static_cast<int>(all.size());
  return list;
}

DIAPAUSE_RDMA void rdma_free_devices(ibv_context** list) { std::free(list); }
