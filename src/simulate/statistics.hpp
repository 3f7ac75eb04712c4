// Means over replicas, and their confidence intervals.
#pragma once

#include <cstddef>
#include <vector>

namespace diapause::simulate {

struct Estimate {
  double mean = 0;
  // Half the width of the 95 % confidence interval of the mean, by Student's t; 0 with fewer than
  // two values.
  double half_width = 0;
  std::size_t count = 0;

  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

Estimate estimate(const std::vector<double>& values);

// Returns the factor of the standard error of the mean for so many degrees of freedom (at least
// one).
double student_t_95(std::size_t degrees_of_freedom);

}  // namespace diapause::simulate
