// The Lambert W function, which gives optimal intervals in closed form.
#pragma once

namespace diapause::model {

// Returns W0(z), the solution w >= -1 of w e^w = z, for z >= -1/e; NaN for smaller z.
double lambert_w0(double z);

// Returns 1 + W0(-(1 - y) / e) for y >= 0, with full precision also where y is tiny and z would be
// too close to the branch point at -1/e: the solution x >= 0 of 1 - (1 - x) e^x = y, which is about
// sqrt(2 y) for small y. NaN for y < 0.
double one_plus_lambert_w0(double y);

}  // namespace diapause::model
