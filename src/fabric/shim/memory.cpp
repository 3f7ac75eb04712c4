// Provides protection domains, memory regions and address handles.
#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

ibv_mr* register_real(Shim& shim, const Region& region) {
  ibv_pd* const domain = of(region.shown.pd).real;
  const bool is_plain = region.iova == reinterpret_cast<std::uintptr_t>(region.shown.addr) &&
                        (region.access & IBV_ACCESS_OPTIONAL_RANGE) == 0;
  if (is_plain)
    return shim.real.ibv_reg_mr(domain, region.shown.addr, region.shown.length,
                                static_cast<int>(region.access));
  if (shim.real.ibv_reg_mr_iova2 != nullptr) {
    return shim.real.ibv_reg_mr_iova2(domain, region.shown.addr, region.shown.length, region.iova,
                                      region.access);
  }
  errno = EOPNOTSUPP;
  return nullptr;
}

bool is_taken(const Shim& shim, const ibv_mr* real, const Context& context) {
  return shim.directory.has_key(real->rkey) || context.local_keys.has(real->lkey);
}

// Registers memory under keys by which programs know no other memory.
ibv_mr* make_region(ibv_pd* domain, void* address, std::size_t length, std::uint64_t iova,
                    unsigned access) {
  Shim& shim = Shim::get();
  // All memory that there will ever be, at no address of its own.
  if (length == SIZE_MAX) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const Passage passage(shim.gate);
  auto region = std::make_unique<Region>();
  region->shown = {domain->context, domain, address, length, 0, 0, 0};
  region->iova = iova;
  region->access = access;
  std::vector<ibv_mr*> set_aside;
  while ((region->real = register_real(shim, *region)) != nullptr &&
         is_taken(shim, region->real, of(domain->context))) {
    set_aside.push_back(region->real);
  }
  const int error = errno;
  for (ibv_mr* const one : set_aside) shim.real.ibv_dereg_mr(one);
  errno = error;
  if (region->real == nullptr) return nullptr;
  region->shown.handle = region->real->handle;
  region->shown.lkey = region->real->lkey;
  region->shown.rkey = region->real->rkey;
  shim.regions.add(region.get());
  return &region.release()->shown;
}

}  // namespace

Status open_real(Shim& shim, Region& region) {
  region.real = register_real(shim, region);
  if (region.real != nullptr) return {};
  return fail(os_error(fmt::format("registering {} bytes of memory at {} again",
                                   region.shown.length, fmt::ptr(region.shown.addr)),
                       errno));
}

Status open_real(Shim& shim, Handle& handle) {
  Context& context = of(handle.shown.context);
  ibv_ah_attr attributes = real_attributes(shim, context, handle.attributes, 0, 0);
  handle.real = shim.real.ibv_create_ah(of(handle.shown.pd).real, &attributes);
  handle.last = 0;
  if (handle.real != nullptr) return {};
  return fail(os_error("making an address handle again", errno));
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

DIAPAUSE_VERB ibv_pd* ibv_alloc_pd(ibv_context* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown)) return shim.real.ibv_alloc_pd(shown);
  const Passage passage(shim.gate);
  auto domain = std::make_unique<Domain>();
  domain->real = shim.real.ibv_alloc_pd(of(shown).real);
  if (domain->real == nullptr) return nullptr;
  domain->shown = {shown, domain->real->handle};
  shim.domains.add(domain.get());
  return &domain.release()->shown;
}

DIAPAUSE_VERB int ibv_dealloc_pd(ibv_pd* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_dealloc_pd(shown);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_dealloc_pd(of(shown).real);
  if (error != 0) return error;
  shim.domains.remove(&of(shown));
  delete &of(shown);
  return 0;
}

DIAPAUSE_VERB ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  if (!is_ours(domain->context))
    return Shim::get().real.ibv_reg_mr(domain, address, length, access);
  return make_region(domain, address, length, reinterpret_cast<std::uintptr_t>(address),
                     static_cast<unsigned>(access));
}

DIAPAUSE_VERB ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, std::size_t length,
                                      std::uint64_t iova, int access) {
  if (!is_ours(domain->context))
    return Shim::get().real.ibv_reg_mr_iova(domain, address, length, iova, access);
  return make_region(domain, address, length, iova, static_cast<unsigned>(access));
}

DIAPAUSE_VERB ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length,
                                       std::uint64_t iova, unsigned access) {
  if (!is_ours(domain->context))
    return Shim::get().real.ibv_reg_mr_iova2(domain, address, length, iova, access);
  return make_region(domain, address, length, iova, access);
}

// Memory of other devices is not restored.
DIAPAUSE_VERB ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                                        std::uint64_t iova, int descriptor, int access) {
  Shim& shim = Shim::get();
  if (!is_ours(domain->context))
    return shim.real.ibv_reg_dmabuf_mr(domain, offset, length, iova, descriptor, access);
  errno = EOPNOTSUPP;
  return nullptr;
}

// The keys may change by it, and to such as programs know other memory by.
DIAPAUSE_VERB int ibv_rereg_mr(ibv_mr* shown, int flags, ibv_pd* domain, void* address,
                               std::size_t length, int access) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context))
    return shim.real.ibv_rereg_mr(shown, flags, domain, address, length, access);
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

DIAPAUSE_VERB int ibv_dereg_mr(ibv_mr* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_dereg_mr(shown);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_dereg_mr(of(shown).real);
  if (error != 0) return error;
  shim.regions.remove(&of(shown));
  delete &of(shown);
  return 0;
}

DIAPAUSE_VERB ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  Shim& shim = Shim::get();
  if (!is_ours(domain->context)) return shim.real.ibv_create_ah(domain, attributes);
  const Passage passage(shim.gate);
  auto handle = std::make_unique<Handle>();
  handle->shown = {domain->context, domain, 0};
  handle->attributes = *attributes;
  handle->address = address_of(*attributes);
  if (!open_real(shim, *handle)) return nullptr;
  handle->shown.handle = handle->real->handle;
  shim.handles.add(handle.get());
  return &handle.release()->shown;
}

DIAPAUSE_VERB int ibv_destroy_ah(ibv_ah* shown) {
  Shim& shim = Shim::get();
  if (!is_ours(shown->context)) return shim.real.ibv_destroy_ah(shown);
  const Passage passage(shim.gate);
  const int error = shim.real.ibv_destroy_ah(of(shown).real);
  if (error != 0) return error;
  shim.handles.remove(&of(shown));
  delete &of(shown);
  return 0;
}
