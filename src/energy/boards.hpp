// Names the accelerator boards that no meter covers, so that nobody takes an energy without them
// for that of the node.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "energy/meter.hpp"
#include "sys/kernel.hpp"

namespace diapause::energy {

// Counts the boards that the PCI bus below `root` shows, by maker, and the zones that tell of one.
// Returns an obstacle for each maker of whom boards are left out. There is none where a zone covers
// the boards together with the rest, as that of a node or of a superchip does.
std::vector<Obstacle> boards_left_out(sys::Kernel& kernel, const std::string& root,
                                      std::span<const Zone> zones);

}  // namespace diapause::energy
