#include "library/flip_injector.hpp"

#include <fmt/core.h>

#include <vector>

namespace diapause::library {
namespace {

// A step of splitmix64, a generator that is good enough to choose which bit to flip.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Status flip_bit(RegionTable& regions, const std::string& name, std::uint64_t element,
                std::uint32_t bit) {
  DIAPAUSE_TRY_ASSIGN(ProtectedRegion* const region, regions.get(name));
  const format::Region& r = region->description;
  if (element >= r.count || bit >= 8 * r.element_bytes) {
    return fail(
        Code::argument,
        fmt::format("bit {} of element {} is outside region '{}' of {} elements of {} bytes", bit,
                    element, name, r.count, r.element_bytes));
  }
  region->data[element * r.element_bytes + bit / 8] ^= std::byte{1} << (bit % 8);
  return {};
}

void FlipInjector::flip_what_is_due(RegionTable& regions, double now_s, const LogSink& log) {
  if (!settings_.bit || now_s - last_s_ < settings_.every_s) return;
  last_s_ = now_s;
  std::vector<const ProtectedRegion*> targets;
  for (const ProtectedRegion& region : regions) {
    const format::Region& r = region.description;
    const bool chosen = settings_.region.empty() || settings_.region == r.name;
    if (chosen && r.count > 0 && *settings_.bit < 8 * r.element_bytes) targets.push_back(&region);
  }
  for (std::uint32_t i = 0; i < settings_.count && !targets.empty(); ++i) {
    if (settings_.limit != 0 && done_ >= settings_.limit) return;
    const format::Region& region = targets[next_random(random_) % targets.size()]->description;
    const std::uint64_t element = next_random(random_) % region.count;
    if (!flip_bit(regions, region.name, element, *settings_.bit)) return;
    ++done_;
    log(Severity::information,
        fmt::format("flipped bit {} of element {} of '{}'", *settings_.bit, element, region.name));
  }
}

}  // namespace diapause::library
