// Means over replicas, and how sure they are.
#pragma once

#include <cstddef>
#include <vector>

namespace diapause::simulate {

struct Estimate {
  double mean = 0;
  double half_width = 0;  // of the 95 % confidence interval of the mean, by Student's t; 0 with fewer than two values
  std::size_t count = 0;

  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

Estimate estimate(const std::vector<double>& values);

// The factor of the standard error of the mean with so many degrees of freedom, of which there is at least one.
double student_t_95(std::size_t degrees_of_freedom);

}  // namespace diapause::simulate
