// Measures what sampling the energy of a node costs: the processor time of the sampler's thread
// against the time that passes.
#include "energy/sampler.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "measure.hpp"

namespace {

constexpr double kSeconds = 2;

}  // namespace

// sampler <runs> <period in milliseconds> <root>   the root may hold the /sys of a larger machine
int main(int argc, char** argv) {
  if (argc != 4) bench::give_up("usage: sampler <runs> <period in milliseconds> <root>");
  diapause::config::EnergySettings settings;
  settings.period_ms = static_cast<std::uint32_t>(std::atoi(argv[2]));
  settings.root = argv[3];
  const auto sampler = diapause::energy::Sampler::start(settings, diapause::sys::real_kernel());
  if (!sampler) bench::give_up(sampler.error().message);
  if ((*sampler)->domains().empty()) bench::give_up("there is nothing to sample");
  bench::Pairs pairs;
  for (int run = 0; run < std::atoi(argv[1]); ++run) {
    const double cost_s = (*sampler)->cost_s();
    const double wall_s = bench::seconds_of(
        [] { std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds)); });
    pairs.emplace_back((*sampler)->cost_s() - cost_s, wall_s);
  }
  bench::print_json(pairs);
}
