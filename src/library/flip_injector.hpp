// Bit flips on purpose, in the memory of the program, as [flips] configures them: for trying out whether a program
// notices.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "library/region_table.hpp"

namespace diapause::library {

// Flips one bit of one element of a region. Code::not_found without the region, Code::argument outside of it.
Status flip_bit(RegionTable& regions, const std::string& region, std::uint64_t element, std::uint32_t bit);

class FlipInjector {
 public:
  // The same seed gives the same flips on the same rank. `settings` must outlive the object.
  FlipInjector(const config::FlipSettings& settings, std::uint32_t rank)
      : settings_(settings), random_(settings.seed + rank) {}

  // To be called in every iteration, `now_s` after the instance was opened. Flips what is due and logs each flip.
  void flip_what_is_due(RegionTable& regions, double now_s, const LogSink& log);

 private:
  const config::FlipSettings& settings_;
  double last_s_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t random_;
};

}  // namespace diapause::library
