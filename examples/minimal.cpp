// A random walk in C++: a vector of walkers and the state of the random numbers. Run the program
// twice: the first run stops half-way on purpose, the second continues and ends where an
// undisturbed run would have.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "diapause/diapause.hpp"

namespace {

constexpr std::uint64_t kSteps = 200, kStopAt = 111;

void walk(std::vector<double>& walkers, std::uint64_t& random) {
  for (double& walker : walkers) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    walker += (random >> 63) != 0 ? 1 : -1;
  }
}

double undisturbed_sum() {
  std::vector<double> walkers(1000);
  std::uint64_t random = 42;
  for (std::uint64_t step = 0; step < kSteps; ++step) walk(walkers, random);
  double sum = 0;
  for (const double walker : walkers) sum += walker;
  return sum;
}

}  // namespace

int main() try {
  std::vector<double> walkers(1000);
  std::uint64_t random = 42, first = 0;

  diapause::Instance diapause("minimal_cpp");
  diapause.protect("walkers", walkers);
  diapause.protect("random", &random);
  if (const auto restart = diapause.restart()) {
    first = restart->version;
    std::cout << "continuing after step " << first << std::endl;
  }

  for (std::uint64_t step = first + 1; step <= kSteps; ++step) {
    walk(walkers, random);
    if (step % 20 == 0) diapause.checkpoint(step, DIAPAUSE_L4);
    if (first == 0 && step == kStopAt) {
      std::cout << "stopping half-way; run me again" << std::endl;
      std::_Exit(3);  // like a crash: no destructor runs
    }
  }

  double sum = 0;
  for (const double walker : walkers) sum += walker;
  std::cout << "the walkers' positions add up to " << sum << "\n";
  diapause.finish();  // done: the next run begins anew. Without this call the instance would only
                      // be closed
  return sum == undisturbed_sum() ? 0 : 1;
} catch (const diapause::Failure& failure) {
  std::fprintf(stderr, "minimal_cpp: %s\n", failure.what());
  return 2;
}
