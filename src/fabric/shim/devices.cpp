// Devices, contexts and ports.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

constexpr int kMostGids = 256;

bool is_zero(const Gid& gid) {
  return std::ranges::all_of(gid, [](std::uint8_t byte) { return byte == 0; });
}

// Addresses of Internet protocol 4 are mapped, and only local ones begin with fe80: an index must
// stay one of its kind.
int family_of(const Gid& gid) {
  constexpr Gid kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(gid.begin(), gid.begin() + 12, kMapped.begin())) return 4;
  return gid[0] == 0xfe && gid[1] == 0x80 ? 1 : 6;
}

struct RealGid {
  Gid gid{};
  std::uint32_t type = 0, index = 0;
};

std::vector<RealGid> gids_of(Shim& shim, ibv_context* real, std::uint8_t port, int length) {
  std::vector<RealGid> gids;
  for (int i = 0; i < std::min(length, kMostGids); ++i) {
    ibv_gid gid{};
    if (shim.real.ibv_query_gid(real, port, i, &gid) != 0) continue;
    int type = 0;
    if (shim.real.ibv_query_gid_type != nullptr) {
      (void)shim.real.ibv_query_gid_type(real, port, static_cast<unsigned>(i), &type);
    }
    if (!is_zero(to_gid(gid)))
      gids.push_back(
          {to_gid(gid), static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(i)});
  }
  return gids;
}

// Returns the real GID that stands for one that the program knows: one of its type and family, if
// possible at its index.
const RealGid* match(const std::vector<RealGid>& gids, const GidEntry& entry, std::uint32_t index) {
  const RealGid* best = nullptr;
  for (const RealGid& one : gids) {
    if (one.type != entry.type || family_of(one.gid) != family_of(entry.shown)) continue;
    if (one.gid == entry.shown) return &one;
    if (best == nullptr || one.index == index) best = &one;
  }
  return best;
}

Status look_at_port(Shim& shim, Context& context, std::uint32_t number) {
  ibv_port_attr attributes{};
  const auto port_number = static_cast<std::uint8_t>(number);
  if (::___ibv_query_port(context.real, port_number, &attributes) != 0) {
    return fail(
        os_error(fmt::format("port {} of adapter {}", number, context.device->real_name), errno));
  }
  Port& port = context.port(number);
  port.real_lid = attributes.lid;
  const auto gids = gids_of(shim, context.real, port_number, attributes.gid_tbl_len);
  const bool is_new = port.gids.empty();
  if (is_new) {
    port.shown_lid = attributes.lid;
    for (const RealGid& one : gids) {
      if (port.gids.size() <= one.index) port.gids.resize(one.index + 1);
      port.gids[one.index] = {one.gid, one.type, one.index, one.gid};
    }
    return {};
  }
  for (std::uint32_t i = 0; i < port.gids.size(); ++i) {
    GidEntry& entry = port.gids[i];
    if (is_zero(entry.shown)) continue;
    const RealGid* const found = match(gids, entry, i);
    if (found == nullptr) {
      return fail(
          Code::mismatch,
          fmt::format(
              "adapter {} has no GID of the kind that the program uses at index {} of port {}",
              context.device->real_name, i, number));
    }
    entry.real_index = found->index;
    entry.real = found->gid;
  }
  return {};
}

int query_port(ibv_context* shown, std::uint8_t number, ibv_port_attr* attributes,
               std::size_t bytes) {
  Shim& shim = Shim::get();
  const Passage passage(shim.gate);
  Context& context = of(shown);
  ibv_port_attr real{};
  const int error = ::___ibv_query_port(context.real, number, &real);
  if (error != 0) return error;
  if (context.has_port(number)) real.lid = context.port(number).shown_lid;
  std::memcpy(attributes, &real, std::min(bytes, sizeof real));
  return 0;
}

// Returns the device that the program sees for a real one.
Device* device_for(Shim& shim, ibv_device* real) {
  for (Device* const known : shim.devices.all()) {
    if (known->real_name == real->name) return known;
  }
  auto device = std::make_unique<Device>();
  device->shown.device = *real;
  device->real_name = real->name;
  device->guid = shim.real.ibv_get_device_guid(real);
  shim.devices.add(device.get());
  return device.release();
}

// Calls `use` with the real device, which is there as long as it runs.
template <class Use>
bool with_real_device(Shim& shim, const std::string& name, const Use& use) {
  int count = 0;
  ibv_device** const list = shim.real.ibv_get_device_list(&count);
  if (list == nullptr) return false;
  bool is_found = false;
  for (int i = 0; i < count && !is_found; ++i) {
    is_found = name == list[i]->name;
    if (is_found) use(list[i]);
  }
  shim.real.ibv_free_device_list(list);
  return is_found;
}

// After a restart: the adapter of the same name, or one that no other device of the program stands
// for.
Status choose_adapter(Shim& shim, Device& device) {
  if (with_real_device(shim, device.real_name, [](ibv_device*) {})) return {};
  int count = 0;
  ibv_device** const list = shim.real.ibv_get_device_list(&count);
  const auto is_free = [&](const ibv_device* one) {
    return std::ranges::none_of(shim.devices.all(),
                                [&](const Device* other) { return other->real_name == one->name; });
  };
  const std::string before = device.real_name;
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (device.real_name == before && is_free(list[i])) device.real_name = list[i]->name;
  }
  if (list != nullptr) shim.real.ibv_free_device_list(list);
  if (device.real_name != before) return {};
  return fail(
      Code::not_found,
      fmt::format(
          "there is no adapter for {}: {} were found, and the others of the program have them",
          device.shown.device.name, count));
}

}  // namespace

Context& of(ibv_context* shown) {
  return *reinterpret_cast<Context*>(reinterpret_cast<char*>(shown) -
                                     offsetof(verbs_context, context));
}

Gid Context::real_of_own(std::uint32_t number, const Gid& shown_gid) {
  if (!has_port(number)) return shown_gid;
  const auto known = std::ranges::find(port(number).gids, shown_gid, &GidEntry::shown);
  return known == port(number).gids.end() ? shown_gid : known->real;
}

std::uint8_t Context::shown_index(std::uint32_t number, std::uint8_t real_index) {
  if (!has_port(number)) return real_index;
  const std::vector<GidEntry>& gids = port(number).gids;
  const auto is_it = [&](const GidEntry& one) {
    return !is_zero(one.shown) && one.real_index == real_index;
  };
  const auto known = std::ranges::find_if(gids, is_it);
  return known == gids.end() ? real_index : static_cast<std::uint8_t>(known - gids.begin());
}

bool is_ours(const ibv_context* context) { return context->ops.poll_cq == operations().poll_cq; }

Gid to_gid(const ibv_gid& gid) {
  Gid made;
  std::memcpy(made.data(), gid.raw, made.size());
  return made;
}

ibv_gid to_ibv(const Gid& gid) {
  ibv_gid made{};
  std::memcpy(made.raw, gid.data(), gid.size());
  return made;
}

Address address_of(const ibv_ah_attr& attributes) {
  if (attributes.is_global != 0) return {true, to_gid(attributes.grh.dgid), 0};
  return {false, {}, attributes.dlid};
}

ibv_ah_attr real_attributes(Shim& shim, Context& context, const ibv_ah_attr& shown,
                            std::uint64_t home, std::uint32_t port) {
  ibv_ah_attr real = shown;
  if (shown.is_global != 0) {
    real.grh.dgid = to_ibv(shim.directory.real_address(address_of(shown), home, port).gid);
    if (context.has_port(shown.port_num)) {
      const std::vector<GidEntry>& gids = context.port(shown.port_num).gids;
      if (shown.grh.sgid_index < gids.size()) {
        real.grh.sgid_index = static_cast<std::uint8_t>(gids[shown.grh.sgid_index].real_index);
      }
    }
  }
  if (shown.dlid != 0) {
    real.dlid = static_cast<std::uint16_t>(
        shim.directory.real_address({false, {}, shown.dlid}, home, port).lid);
  }
  return real;
}

Status look_at_ports(Shim& shim, Context& context) {
  for (std::uint32_t number = 1; number <= context.ports.size(); ++number) {
    DIAPAUSE_TRY(look_at_port(shim, context, number));
  }
  return {};
}

Status open_real(Shim& shim, Context& context) {
  DIAPAUSE_TRY(choose_adapter(shim, *context.device));
  const auto open_it = [&](ibv_device* device) {
    context.real = shim.real.ibv_open_device(device);
  };
  if (!with_real_device(shim, context.device->real_name, open_it) || context.real == nullptr) {
    return fail(os_error("opening the adapter " + context.device->real_name, errno));
  }
  ibv_device_attr attributes{};
  if (shim.real.ibv_query_device(context.real, &attributes) != 0) {
    return fail(os_error("asking the adapter " + context.device->real_name, errno));
  }
  if (context.ports.empty()) context.ports.resize(attributes.phys_port_cnt);
  if (context.ports.size() > attributes.phys_port_cnt) {
    return fail(Code::mismatch, fmt::format("adapter {} has {} ports, and the program knows {}",
                                            context.device->real_name, attributes.phys_port_cnt,
                                            context.ports.size()));
  }
  const int events = context.real->async_fd;
  ::fcntl(events, F_SETFL, ::fcntl(events, F_GETFL) | O_NONBLOCK);
  epoll_event watched_events{};
  watched_events.events = EPOLLIN;
  if (::epoll_ctl(context.face()->async_fd, EPOLL_CTL_ADD, events, &watched_events) != 0) {
    return fail(os_error("watching events of an adapter", errno));
  }
  context.face()->cmd_fd = context.real->cmd_fd;
  context.face()->num_comp_vectors = context.real->num_comp_vectors;
  return look_at_ports(shim, context);
}

void close_real(Shim& shim, Context& context) {
  if (context.real == nullptr) return;
  ::epoll_ctl(context.face()->async_fd, EPOLL_CTL_DEL, context.real->async_fd, nullptr);
  shim.real.ibv_close_device(std::exchange(context.real, nullptr));
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_VERB ibv_device** ibv_get_device_list(int* count) {
  Shim& shim = Shim::get();
  const Passage passage(shim.gate);
  const std::lock_guard lock(shim.listing);
  int found = 0;
  ibv_device** const real = shim.real.ibv_get_device_list(&found);
  if (real == nullptr) return nullptr;
  auto** const list = static_cast<ibv_device**>(
      std::calloc(static_cast<std::size_t>(found) + 1, sizeof(ibv_device*)));
  for (int i = 0; list != nullptr && i < found; ++i)
    list[i] = &device_for(shim, real[i])->shown.device;
  shim.real.ibv_free_device_list(real);
  if (count != nullptr) *count = list == nullptr ? 0 : found;
  return list;
}

DIAPAUSE_VERB void ibv_free_device_list(ibv_device** list) { std::free(list); }

DIAPAUSE_VERB __be64 ibv_get_device_guid(ibv_device* shown) {
  return reinterpret_cast<Device*>(shown)->guid;
}

DIAPAUSE_VERB int ibv_get_device_index(ibv_device* shown) {
  Shim& shim = Shim::get();
  const Passage passage(shim.gate);
  int index = -1;
  with_real_device(shim, reinterpret_cast<Device*>(shown)->real_name, [&](ibv_device* device) {
    if (shim.real.ibv_get_device_index != nullptr) index = shim.real.ibv_get_device_index(device);
  });
  return index;
}

DIAPAUSE_VERB ibv_context* ibv_open_device(ibv_device* shown) {
  Shim& shim = Shim::get();
  if (!shim.begin_to_listen()) return nullptr;
  const Passage passage(shim.gate);
  auto context = std::make_unique<Context>();
  ibv_context* const face = context->face();
  context->shown.sz = sizeof(verbs_context);
  context->shown.query_port = query_port;
  context->shown.create_qp_ex = create_extended_pair;
  context->shown.create_cq_ex = create_extended_queue;
  face->abi_compat = __VERBS_ABI_IS_EXTENDED;
  face->device = shown;
  face->ops = operations();
  pthread_mutex_init(&face->mutex, nullptr);
  context->device = reinterpret_cast<Device*>(shown);
  (void)!::getrandom(&context->home, sizeof context->home, 0);
  context->bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  face->async_fd = watched(-1, context->bell);
  if (!open_real(shim, *context)) {
    const int error = errno;
    close_real(shim, *context);
    ::close(face->async_fd);
    ::close(context->bell);
    errno = error;
    return nullptr;
  }
  shim.contexts.add(context.get());
  return context.release()->face();
}

DIAPAUSE_VERB int ibv_close_device(ibv_context* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_close_device(shown);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  close_real(shim, context);
  ::close(shown->async_fd);
  ::close(context.bell);
  shim.contexts.remove(&context);
  delete &context;
  return 0;
}

DIAPAUSE_VERB int ibv_query_device(ibv_context* shown, ibv_device_attr* attributes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_query_device(shown, attributes);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_query_device(of(shown).real, attributes);
  if (error != 0) return error;
  attributes->node_guid = of(shown).device->guid;
  attributes->max_qp_wr -= 1;  // one is for the marker of a drain
  attributes->max_mw = 0;
  constexpr unsigned kWindows =
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes->device_cap_flags &= ~(kWindows | IBV_DEVICE_MEM_MGT_EXTENSIONS);
  return 0;
}

DIAPAUSE_VERB int ibv_query_port(ibv_context* shown, std::uint8_t number,
                                 _compat_ibv_port_attr* attributes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_query_port(shown, number, attributes);
  // Programs that were built long ago know the first part only.
  return query_port(shown, number, reinterpret_cast<ibv_port_attr*>(attributes),
                    offsetof(ibv_port_attr, flags));
}

DIAPAUSE_VERB int ibv_query_gid(ibv_context* shown, std::uint8_t number, int index, ibv_gid* gid) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_query_gid(shown, number, index, gid);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  const bool is_known = context.has_port(number) && index >= 0 &&
                        static_cast<std::size_t>(index) < context.port(number).gids.size() &&
                        !is_zero(context.port(number).gids[static_cast<std::size_t>(index)].shown);
  if (!is_known) return shim.real.ibv_query_gid(context.real, number, index, gid);
  *gid = to_ibv(context.port(number).gids[static_cast<std::size_t>(index)].shown);
  return 0;
}

DIAPAUSE_VERB int ibv_query_gid_type(ibv_context* shown, std::uint8_t number, unsigned index,
                                     int* type) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_query_gid_type(shown, number, index, type);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  if (context.has_port(number) && index < context.port(number).gids.size()) {
    *type = static_cast<int>(context.port(number).gids[index].type);
    return 0;
  }
  return shim.real.ibv_query_gid_type(context.real, number, index, type);
}

DIAPAUSE_VERB int _ibv_query_gid_ex(ibv_context* shown, std::uint32_t number, std::uint32_t index,
                                    ibv_gid_entry* entry, std::uint32_t flags, std::size_t bytes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown))
    return shim.real._ibv_query_gid_ex(shown, number, index, entry, flags, bytes);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  std::uint32_t real_index = index;
  const GidEntry* known = nullptr;
  if (context.has_port(number) && index < context.port(number).gids.size()) {
    known = &context.port(number).gids[index];
    real_index = known->real_index;
  }
  const int error =
      shim.real._ibv_query_gid_ex(context.real, number, real_index, entry, flags, bytes);
  if (error == 0 && known != nullptr && !is_zero(known->shown)) {
    entry->gid = to_ibv(known->shown);
    entry->gid_index = index;
  }
  return error;
}

DIAPAUSE_VERB ssize_t _ibv_query_gid_table(ibv_context* shown, ibv_gid_entry* entries,
                                           std::size_t most, std::uint32_t flags,
                                           std::size_t bytes) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real._ibv_query_gid_table(shown, entries, most, flags, bytes);
  const Passage passage(shim.gate);
  Context& context = of(shown);
  const ssize_t count = shim.real._ibv_query_gid_table(context.real, entries, most, flags, bytes);
  for (ssize_t i = 0; i < count; ++i) {
    auto& entry = *reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<char*>(entries) +
                                                    static_cast<std::size_t>(i) * bytes);
    if (!context.has_port(entry.port_num)) continue;
    const std::vector<GidEntry>& gids = context.port(entry.port_num).gids;
    const auto known = std::ranges::find_if(gids, [&](const GidEntry& one) {
      return !is_zero(one.shown) && one.real_index == entry.gid_index;
    });
    if (known == gids.end()) continue;
    entry.gid = to_ibv(known->shown);
    entry.gid_index = static_cast<std::uint32_t>(known - gids.begin());
  }
  return count;
}

DIAPAUSE_VERB int ibv_query_pkey(ibv_context* shown, std::uint8_t number, int index, __be16* key) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_query_pkey(shown, number, index, key);
  const Passage passage(shim.gate);
  return shim.real.ibv_query_pkey(of(shown).real, number, index, key);
}

DIAPAUSE_VERB int ibv_get_pkey_index(ibv_context* shown, std::uint8_t number, __be16 key) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_get_pkey_index(shown, number, key);
  const Passage passage(shim.gate);
  return shim.real.ibv_get_pkey_index(of(shown).real, number, key);
}

DIAPAUSE_VERB int ibv_resolve_eth_l2_from_gid(ibv_context* shown, ibv_ah_attr* attributes,
                                              std::uint8_t address[6], std::uint16_t* network) {
  Shim& shim = Shim::get();
  if (!is_ours(shown))
    return shim.real.ibv_resolve_eth_l2_from_gid(shown, attributes, address, network);
  const Passage passage(shim.gate);
  ibv_ah_attr real = real_attributes(shim, of(shown), *attributes, 0, 0);
  return shim.real.ibv_resolve_eth_l2_from_gid(of(shown).real, &real, address, network);
}

// For the connection manager of Diapause: changes a GID by which the job knows a port to the one
// that the port has now. Returns whether it is another one.
DIAPAUSE_VERB int diapause_verbs_present_gid(ibv_gid* gid) {
  Shim& shim = Shim::get();
  const Passage passage(shim.gate);
  const Address known{true, to_gid(*gid), 0};
  const Address present = shim.directory.real_address(known, 0, 0);
  *gid = to_ibv(present.gid);
  return present == known ? 0 : 1;
}

// Objects that another process has made cannot be made again by this one.
DIAPAUSE_VERB ibv_context* ibv_import_device(int) {
  errno = EOPNOTSUPP;
  return nullptr;
}
DIAPAUSE_VERB ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
DIAPAUSE_VERB ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
DIAPAUSE_VERB ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
