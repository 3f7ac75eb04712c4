#include "library/region_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "library/files.hpp"

namespace diapause::library {
namespace {

Status check(const ProtectedRegion& region) {
  const format::Region& description = region.description;
  if (description.name.empty() || description.name.size() > 255) {
    return fail(Code::argument, "a region's name has 1 to 255 bytes");
  }
  if (description.name.starts_with(store::kFilePrefix)) {
    return fail(Code::argument,
                fmt::format("region '{}': names that begin with '{}' are those of files",
                            description.name, store::kFilePrefix));
  }
  if (description.element_bytes == 0) {
    return fail(Code::argument,
                fmt::format("region '{}': an element has at least 1 byte", description.name));
  }
  constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;
  if (description.count > kAddressSpaceBytes / description.element_bytes) {
    return fail(Code::argument,
                fmt::format("region '{}': {} elements of {} bytes are more than there can be",
                            description.name, description.count, description.element_bytes));
  }
  if (region.data == nullptr && description.count > 0) {
    return fail(Code::argument, fmt::format("region '{}': no address for {} elements",
                                            description.name, description.count));
  }
  return {};
}

ByteView memory_of(const ProtectedRegion& region) {
  return {region.data, region.description.stored_bytes};
}

Status check_readable_as(const ProtectedRegion& region, const std::string& why) {
  if (why.empty()) return {};
  return fail(Code::argument,
              fmt::format("region '{}' cannot be read: {}", region.description.name, why));
}

}  // namespace

// Asks the kernel for a few small pieces of memory, which is cheaper than to read all mappings of
// the process. Returns false where the regions are large or scattered, or `are_usable` says so of
// one of them.
bool RegionTable::are_surely(bool (*are_usable)(sys::PageRange)) const {
  constexpr std::uint64_t kMostBytes = 16 * kMiB;
  constexpr std::size_t kMostPieces = 64;
  if (bytes_ > kMostBytes) return false;
  std::vector<sys::PageRange> pieces;
  for (const auto& [data, region] : by_address_) {
    const ByteView memory = memory_of(*region);
    if (memory.empty()) continue;
    const sys::PageRange pages = sys::pages_of(memory);
    if (!pieces.empty() && pages.begin <= pieces.back().end) {
      pieces.back().end = std::max(pieces.back().end, pages.end);
    } else if (pieces.size() < kMostPieces) {
      pieces.push_back(pages);
    } else {
      return false;
    }
  }
  return std::ranges::all_of(pieces, are_usable);
}

bool RegionTable::are_surely_writable() const { return are_surely(sys::are_surely_writable); }

Status RegionTable::check_readable() const {
  if (are_surely(sys::are_surely_readable)) return {};
  const auto mappings = sys::Mappings::read();
  if (!mappings) return {};  // nobody can tell
  for (const ProtectedRegion& region : regions_) {
    DIAPAUSE_TRY(check_readable_as(region, mappings->why_unreadable(memory_of(region))));
  }
  return {};
}

Status RegionTable::protect(ProtectedRegion region) {
  DIAPAUSE_TRY(check(region));
  region.description.stored_bytes = region.description.element_bytes * region.description.count;
  DIAPAUSE_TRY(check_readable_as(region, sys::why_ends_are_unreadable(memory_of(region))));
  if (const auto known = by_name_.find(region.description.name); known != by_name_.end()) {
    const Regions::iterator place = known->second;
    remove(place);
    *place = std::move(region);
    add(place);
    return {};
  }
  regions_.push_back(std::move(region));
  add(std::prev(regions_.end()));
  return {};
}

Status RegionTable::unprotect(const std::string& name) {
  const auto known = by_name_.find(name);
  if (known == by_name_.end())
    return fail(Code::not_found, fmt::format("region '{}' is not protected", name));
  const Regions::iterator place = known->second;
  remove(place);
  regions_.erase(place);
  return {};
}

void RegionTable::add(Regions::iterator region) {
  by_name_.emplace(region->description.name, region);
  by_address_.emplace(region->data, &*region);
  bytes_ += region->description.stored_bytes;
}

void RegionTable::remove(Regions::iterator region) {
  by_name_.erase(region->description.name);
  by_address_.erase({region->data, &*region});
  bytes_ -= region->description.stored_bytes;
}

Result<ProtectedRegion*> RegionTable::get(const std::string& name) {
  const auto known = by_name_.find(name);
  if (known == by_name_.end())
    return fail(Code::not_found, fmt::format("region '{}' is not protected", name));
  return &*known->second;
}

const ProtectedRegion* RegionTable::find_in(ByteView memory) const {
  const auto first = by_address_.lower_bound({memory.data(), nullptr});
  if (first == by_address_.end() || !std::less<>()(first->first, memory.data() + memory.size()))
    return nullptr;
  return first->second;
}

format::ImageIndex RegionTable::index() const {
  format::ImageIndex index;
  index.regions.reserve(regions_.size());
  for (const ProtectedRegion& region : regions_) index.regions.push_back(region.description);
  return index;
}

}  // namespace diapause::library
