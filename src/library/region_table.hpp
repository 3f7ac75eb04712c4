// The regions that one rank of the program has protected, in the order in which it first did so. A
// call takes about as long with twenty thousand regions as with two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "capture/region_capture.hpp"
#include "format/image.hpp"
#include "sys/mappings.hpp"

namespace diapause::library {

struct ProtectedRegion {
  format::Region description;  // name, type, element size, count, place
  std::byte* data = nullptr;
  capture::Declaration declaration = capture::Declaration::changing;
};

// One thread at a time may use the table. The memory of the regions belongs to the program.
class RegionTable {
 public:
  RegionTable() = default;
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Protects a region. A region of the same name is replaced and keeps its place in the order.
  // Code::argument for an impossible description; the table is unchanged then.
  Status protect(ProtectedRegion region);
  // Removes a region. Code::not_found if there is no region of that name.
  Status unprotect(const std::string& name);

  // Returns a pointer that is valid until the region is no longer protected. Code::not_found if
  // there is no region of that name.
  Result<ProtectedRegion*> get(const std::string& name);
  // Returns a region whose first byte lies in this memory; null if there is none.
  const ProtectedRegion* find_in(ByteView memory) const;

  // Returns the sum of the sizes of all regions.
  std::uint64_t bytes() const { return bytes_; }
  // Returns their descriptions, in order.
  format::ImageIndex index() const;
  // Checks that all regions can be read, because memory may have been unmapped since it was
  // protected. Code::argument names the first region that cannot.
  Status check_readable() const;
  // Returns whether all regions can be written to. False means that this is not known.
  bool are_surely_writable() const;
  std::size_t size() const { return regions_.size(); }
  auto begin() const { return regions_.begin(); }
  auto end() const { return regions_.end(); }

 private:
  // A list, so that neither removing nor adding moves the others.
  using Regions = std::list<ProtectedRegion>;

  bool are_surely(bool (*are_usable)(sys::PageRange)) const;
  void add(Regions::iterator region);
  void remove(Regions::iterator region);

  Regions regions_;
  // The names are those in regions_.
  std::unordered_map<std::string_view, Regions::iterator> by_name_;
  std::set<std::pair<const std::byte*, const ProtectedRegion*>> by_address_;
  std::uint64_t bytes_ = 0;
};

}  // namespace diapause::library
