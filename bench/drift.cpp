// Measures what a bound on every value does to a sum of values: the energy of a Lennard-Jones
// liquid that went on from positions and velocities stored by the codec `lattice`. Prints the table
// of docs/compression.md.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "codec/block_coder.hpp"

namespace {

using Vector = std::array<double, 3>;

// All values are in units of the potential. The liquid is periodic and moves by velocity Verlet;
// the potential is cut at 2.5 and shifted to zero there.
class Liquid {
 public:
  Liquid() {
    constexpr std::array<Vector, 4> kCell = {
        {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}}};
    const double cell = kSide / kCells;
    std::mt19937_64 random(1);
    std::normal_distribution<double> speed(0,
                                           std::sqrt(1.44));  // half of it becomes potential energy
    for (int i = 0; i < kCells * kCells * kCells; ++i) {
      const Vector corner = {cell * (i % kCells), cell * (i / kCells % kCells),
                             cell * (i / kCells / kCells)};
      for (const Vector& at : kCell) {
        x.push_back({corner[0] + cell * at[0], corner[1] + cell * at[1], corner[2] + cell * at[2]});
        v.push_back({speed(random), speed(random), speed(random)});
      }
    }
    find_forces();
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t d = 0; d < 3; ++d) {
          v[i][d] += kStep / 2 * force_[i][d];
          x[i][d] += kStep * v[i][d];
        }
      }
      find_forces();
      for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t d = 0; d < 3; ++d) v[i][d] += kStep / 2 * force_[i][d];
      }
    }
  }

  double energy_per_atom() const {
    double kinetic = 0;
    for (const Vector& one : v)
      kinetic += (one[0] * one[0] + one[1] * one[1] + one[2] * one[2]) / 2;
    return (kinetic + potential_) / static_cast<double>(x.size());
  }

  void find_forces() {
    force_.assign(x.size(), {});
    potential_ = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = i + 1; j < x.size(); ++j) add_pair(i, j);
    }
  }

  std::vector<Vector> x, v;

 private:
  void add_pair(std::size_t i, std::size_t j) {
    Vector apart;
    double square = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      apart[d] = x[i][d] - x[j][d];
      apart[d] -= kSide * std::nearbyint(apart[d] / kSide);
      square += apart[d] * apart[d];
    }
    if (square > 2.5 * 2.5) return;
    const double inverse6 = 1 / (square * square * square);
    potential_ += 4 * inverse6 * (inverse6 - 1) - kAtCut;
    const double pull = 24 * inverse6 * (2 * inverse6 - 1) / square;
    for (std::size_t d = 0; d < 3; ++d) {
      force_[i][d] += pull * apart[d];
      force_[j][d] -= pull * apart[d];
    }
  }

  static constexpr int kCells = 6;
  static constexpr double kSide = 10.0783;  // 864 atoms at a density of 0.8442
  static constexpr double kStep = 0.004;
  static constexpr double kAtCut = -0.016316891136;
  std::vector<Vector> force_;
  double potential_ = 0;
};

// Puts what comes back in the place of the values; returns the bytes stored.
double store(std::vector<Vector>& values, double bound) {
  const diapause::MutableBytes bytes = std::as_writable_bytes(std::span(values));
  const diapause::codec::Shape shape{diapause::format::ElementType::float64,
                                     {1, 1, values.size(), 3}};
  auto encoder = diapause::codec::BlockEncoder::create({diapause::codec::CodecId::lattice, bound});
  if (!encoder || !encoder->encode(bytes, shape)) return 0;
  if (!diapause::codec::BlockDecoder().decode(encoder->block(), shape, bytes)) return 0;
  return static_cast<double>(encoder->block().size());
}

}  // namespace

int main() {
  constexpr int kBefore = 500, kAfter = 200;
  Liquid liquid;
  liquid.run(kBefore);
  const double before = liquid.energy_per_atom();
  Liquid unbroken = liquid;
  unbroken.run(kAfter);
  std::printf(
      "| bound | ratio | change of the energy per atom | after %d more steps "
      "|\n|---|---|---|---|\n",
      kAfter);
  std::printf("| exact | 1 | 0 | %+.1e |\n", unbroken.energy_per_atom() - before);
  for (const double bound : {1e-1, 1e-2, 1e-3, 1e-4, 1e-6}) {
    Liquid restored = liquid;
    const double stored = store(restored.x, bound) + store(restored.v, bound);
    restored.find_forces();
    const double changed = restored.energy_per_atom() - before;
    restored.run(kAfter);
    std::printf("| %g | %.1f | %+.1e | %+.1e |\n", bound,
                6 * 8.0 * static_cast<double>(liquid.x.size()) / stored, changed,
                restored.energy_per_atom() - before);
  }
}
