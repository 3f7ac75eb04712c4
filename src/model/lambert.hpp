// The Lambert W function, for optimal intervals in closed form.
#pragma once

namespace diapause::model {

// W0(z): the solution w >= -1 of w e^w = z, for z >= -1/e. NaN for less.
double lambert_w0(double z);

// 1 + W0(-(1 - y) / e) for y >= 0, to full precision also where y is tiny and z would lie too near to the branch point
// at -1/e: the solution x >= 0 of 1 - (1 - x) e^x = y, which is about sqrt(2 y) for small y. NaN for y < 0.
double one_plus_lambert_w0(double y);

}  // namespace diapause::model
