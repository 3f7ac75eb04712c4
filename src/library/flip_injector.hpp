// Flips bits in the program's memory on purpose, as [flips] configures it, to test whether the
// program notices.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "library/region_table.hpp"

namespace diapause::library {

// Flips one bit of one element of a region. Code::not_found if there is no such region,
// Code::argument for an element or a bit outside of it.
Status flip_bit(RegionTable& regions, const std::string& region, std::uint64_t element,
                std::uint32_t bit);

class FlipInjector {
 public:
  // The same seed gives the same flips on the same rank. `settings` must outlive the object.
  FlipInjector(const config::FlipSettings& settings, std::uint32_t rank)
      : settings_(settings), random_(settings.seed + rank) {}

  // Flips the bits that are due, and logs each flip. It is called in every iteration; `now_s` is
  // the time since the instance was opened.
  void flip_what_is_due(RegionTable& regions, double now_s, const LogSink& log);

 private:
  const config::FlipSettings& settings_;
  double last_s_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t random_;
};

}  // namespace diapause::library
