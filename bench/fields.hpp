// States of small solvers that are run here, and fields made up to look like such: what codecs are
// measured with.
#pragma once

#include <string>
#include <vector>

#include "codec/block.hpp"

namespace bench {

struct Field {
  std::string name;
  diapause::codec::Shape shape;
  diapause::ByteVector bytes;
};

// Returns fields of heat conduction, of conjugate gradients (solution and residual), and of a fluid
// of particles (positions and velocities).
std::vector<Field> solver_fields();
// A field with the spectrum of turbulence, in both precisions, and a map with fill values.
std::vector<Field> made_up_fields();

}  // namespace bench
