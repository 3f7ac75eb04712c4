// Vectors that grow and shrink, in C++. They are protected once, each checkpoint holds their
// elements at that moment, and a restart resizes them to the stored length. Run the program twice:
// the first run stops half-way on purpose.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "diapause/diapause.hpp"

namespace {

constexpr std::uint64_t kSteps = 180, kGrowUntil = 100, kBatch = 1000, kEvery = 20, kStopAt = 130;

struct Particle {
  double x[3];
  std::uint32_t cell;
};

Particle particle(std::uint64_t number) {
  const auto k = static_cast<double>(number);
  return {{k, k * k, 1 / (k + 1)}, static_cast<std::uint32_t>(number % 97)};
}

bool is_right(const std::vector<Particle>& particles) {
  if (particles.size() != (2 * kGrowUntil - kSteps) * kBatch) return false;
  for (std::uint64_t k = 0; k < particles.size(); ++k) {
    if (particles[k].x[1] != particle(k).x[1] || particles[k].cell != particle(k).cell)
      return false;
  }
  return true;
}

int run() {
  std::vector<Particle> particles;
  std::vector<double> history;
  std::array<std::uint64_t, 2> counts{};  // steps done, and the greatest number of particles so far
  diapause::Instance diapause("growing_cpp");
  diapause.protect("particles", particles);
  diapause.protect("history", history);
  diapause.protect("counts", counts);

  const auto restart = diapause.restart();
  if (restart)
    std::printf("continuing after step %llu\n", static_cast<unsigned long long>(counts[0]));
  while (counts[0] < kSteps) {
    ++counts[0];
    const bool grows = counts[0] <= kGrowUntil;
    for (std::uint64_t k = 0; k < kBatch; ++k) {
      if (grows) particles.push_back(particle(particles.size()));
      if (!grows) particles.pop_back();
    }
    if (!grows) particles.shrink_to_fit();  // moves the elements
    counts[1] = std::max<std::uint64_t>(counts[1], particles.size());
    history.push_back(static_cast<double>(particles.size()));
    if (counts[0] % kEvery == 0) diapause.checkpoint(counts[0]);
    if (!restart && counts[0] == kStopAt) {
      std::puts("stopping half-way; run me again");
      std::fflush(stdout);
      std::_Exit(3);  // like a crash: nothing is closed
    }
  }
  const bool is_good =
      is_right(particles) && history.size() == kSteps && counts[1] == kGrowUntil * kBatch;
  std::printf("%zu particles left, %s\n", particles.size(),
              is_good ? "all as they should be" : "some wrong");
  diapause.finish();
  return is_good ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const diapause::Failure& failure) {
    std::fprintf(stderr, "growing_cpp: %s\n", failure.what());
    return 2;
  }
}
