#include "fields.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <utility>

namespace bench {
namespace {

using diapause::codec::Dims;
using diapause::format::ElementType;
using Values = std::vector<double>;
using Triples = std::vector<std::array<double, 3>>;

constexpr std::size_t kSide = 128;
constexpr std::size_t kCells = kSide * kSide * kSide;
constexpr Dims kCube = {1, kSide, kSide, kSide};

template <class T>
Field field_of(std::string name, const Dims& dims, const std::vector<T>& values) {
  const auto type = sizeof values.front() % 8 == 0 ? ElementType::float64 : ElementType::float32;
  Field field{std::move(name), {type, dims}, diapause::ByteVector(values.size() * sizeof(T))};
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  return field;
}

// Calls at(index, i, j, k) for all cells of the cube.
template <class At>
void for_cells(At at) {
  for (std::size_t c = 0; c < kCells; ++c) at(c, c / (kSide * kSide), c / kSide % kSide, c % kSide);
}

Values heat() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  Values now(kCells);
  for (int ball = 0; ball < 30; ++ball) {
    const double x = part(random) * kSide, y = part(random) * kSide, z = part(random) * kSide;
    const double radius = 3 + 10 * part(random), height = 100 * part(random);
    for_cells([&](std::size_t c, std::size_t i, std::size_t j, std::size_t k) {
      const double dx = static_cast<double>(i) - x, dy = static_cast<double>(j) - y,
                   dz = static_cast<double>(k) - z;
      if (dx * dx + dy * dy + dz * dz < radius * radius) now[c] += height;
    });
  }
  Values next = now;
  for (int step = 0; step < 60; ++step) {
    for_cells([&](std::size_t c, std::size_t i, std::size_t j, std::size_t k) {
      if (i % (kSide - 1) == 0 || j % (kSide - 1) == 0 || k % (kSide - 1) == 0) return;
      const double around = now[c - 1] + now[c + 1] + now[c - kSide] + now[c + kSide] +
                            now[c - kSide * kSide] + now[c + kSide * kSide];
      next[c] = now[c] + 0.15 * (around - 6 * now[c]);
    });
    std::swap(now, next);
  }
  return now;
}

// q = A p, the seven-point Laplacian with zeros outside; returns p q.
double apply_laplacian(const Values& p, Values& q) {
  double product = 0;
  for_cells([&](std::size_t c, std::size_t i, std::size_t j, std::size_t k) {
    double sum = 6 * p[c];
    if (i > 0) sum -= p[c - kSide * kSide];
    if (i + 1 < kSide) sum -= p[c + kSide * kSide];
    if (j > 0) sum -= p[c - kSide];
    if (j + 1 < kSide) sum -= p[c + kSide];
    if (k > 0) sum -= p[c - 1];
    if (k + 1 < kSide) sum -= p[c + 1];
    q[c] = sum;
    product += sum * p[c];
  });
  return product;
}

// Returns the solution and the residual after 60 iterations.
std::pair<Values, Values> conjugate_gradients() {
  std::mt19937 random(2);
  std::normal_distribution<double> noise;
  Values x(kCells), r(kCells), q(kCells);
  double norm = 0;
  for_cells([&](std::size_t c, std::size_t i, std::size_t j, std::size_t k) {
    r[c] = std::sin(0.1 * static_cast<double>(i)) * std::cos(0.07 * static_cast<double>(j)) +
           0.3 * std::sin(0.3 * static_cast<double>(k)) + 0.05 * noise(random);
    norm += r[c] * r[c];
  });
  Values p = r;
  for (int iteration = 0; iteration < 60; ++iteration) {
    const double alpha = norm / apply_laplacian(p, q), before = norm;
    norm = 0;
    for (std::size_t c = 0; c < kCells; ++c) {
      x[c] += alpha * p[c];
      r[c] -= alpha * q[c];
      norm += r[c] * r[c];
    }
    for (std::size_t c = 0; c < kCells; ++c) p[c] = r[c] + norm / before * p[c];
  }
  return {x, r};
}

// A Lennard-Jones fluid of density 0.8442 in a periodic box, which starts from a face-centred
// lattice.
class Fluid {
 public:
  Fluid() {
    std::mt19937 random(3);
    std::normal_distribution<double> thermal(0, 1.2);
    constexpr double kCorners[4][3] = {{0, 0, 0}, {.5, .5, 0}, {.5, 0, .5}, {0, .5, .5}};
    for (int cell = 0; cell < kLattice * kLattice * kLattice; ++cell) {
      for (const auto& corner : kCorners) {
        const double unit = side_ / kLattice;
        x_.push_back({(cell / (kLattice * kLattice) + corner[0]) * unit,
                      (cell / kLattice % kLattice + corner[1]) * unit,
                      (cell % kLattice + corner[2]) * unit});
        v_.push_back({thermal(random), thermal(random), thermal(random)});
      }
    }
    f_.resize(x_.size());
    find_forces();
  }

  void step() {
    constexpr double kStep = 0.005;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t d = 0; d < 3; ++d) {
        v_[i][d] += kStep / 2 * f_[i][d];
        x_[i][d] += kStep * v_[i][d];
        x_[i][d] -= side_ * std::floor(x_[i][d] / side_);
      }
    }
    find_forces();
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t d = 0; d < 3; ++d) v_[i][d] += kStep / 2 * f_[i][d];
    }
  }

  const Triples& positions() const { return x_; }
  const Triples& velocities() const { return v_; }

 private:
  static constexpr int kLattice = 24;
  static constexpr double kCutOff = 2.5;

  int cell_of(const std::array<double, 3>& x, const std::array<int, 3>& offset) const {
    int cell = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      const int index = static_cast<int>(x[d] / side_ * cells_) % cells_;
      cell = cell * cells_ + (index + offset[d] + cells_) % cells_;
    }
    return cell;
  }

  void find_forces() {
    std::vector<std::vector<std::size_t>> members(
        static_cast<std::size_t>(cells_ * cells_ * cells_));
    for (std::size_t i = 0; i < x_.size(); ++i) {
      members[static_cast<std::size_t>(cell_of(x_[i], {0, 0, 0}))].push_back(i);
      f_[i] = {0, 0, 0};
    }
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (int n = 0; n < 27; ++n) {
        const int cell = cell_of(x_[i], {n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1});
        for (const std::size_t j : members[static_cast<std::size_t>(cell)]) {
          if (j < i) interact(i, j);
        }
      }
    }
  }

  void interact(std::size_t i, std::size_t j) {
    std::array<double, 3> apart;
    double square = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      apart[d] = x_[i][d] - x_[j][d];
      apart[d] -= side_ * std::round(apart[d] / side_);
      square += apart[d] * apart[d];
    }
    if (square >= kCutOff * kCutOff) return;
    const double sixth = 1 / (square * square * square),
                 force = 48 * sixth * (sixth - 0.5) / square;
    for (std::size_t d = 0; d < 3; ++d) {
      f_[i][d] += force * apart[d];
      f_[j][d] -= force * apart[d];
    }
  }

  double side_ = kLattice * std::cbrt(4 / 0.8442);
  int cells_ = static_cast<int>(side_ / kCutOff);
  Triples x_, v_, f_;
};

// Waves in random directions, with amplitudes that fall as the wave number to the power -1/3 for
// each of their bands.
Values turbulence() {
  constexpr int kWaves = 150;
  constexpr double kTurn = 2 * std::numbers::pi / kSide;
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> phase(0, 2 * std::numbers::pi);
  Values field(kCells);
  for (int wave = 0; wave < kWaves; ++wave) {
    const double number = 2 * std::pow(25.0, (wave + 0.5) / kWaves),
                 amplitude = 0.25 / std::cbrt(number);
    std::array<double, 3> k = {normal(random), normal(random), normal(random)};
    const double length = std::hypot(k[0], k[1], k[2]), start = phase(random);
    for (double& component : k) component *= kTurn * number / length;
    for (std::size_t row = 0; row < kSide * kSide; ++row) {
      const double at =
          k[0] * static_cast<double>(row / kSide) + k[1] * static_cast<double>(row % kSide) + start;
      // cos(at + k2 c) by turning a vector: one sine a row instead of one a cell.
      double c = amplitude * std::cos(at), s = amplitude * std::sin(at);
      const double turn_c = std::cos(k[2]), turn_s = std::sin(k[2]);
      for (std::size_t column = 0; column < kSide; ++column) {
        field[row * kSide + column] += c;
        const double next = c * turn_c - s * turn_s;
        s = s * turn_c + c * turn_s;
        c = next;
      }
    }
  }
  return field;
}

std::vector<float> map_with_land() {
  constexpr std::size_t kRows = 721, kColumns = 1440;
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  std::vector<float> map;
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const double y = std::numbers::pi * static_cast<double>(i / kColumns) / kRows;
    const double x = 2 * std::numbers::pi * static_cast<double>(i % kColumns) / kColumns;
    const bool land = std::sin(3 * x) + std::cos(5 * y + x) + 0.3 * std::sin(17 * x + 9 * y) > 0.9;
    const double sea =
        290 + 30 * std::sin(y) + 3 * std::sin(11 * x) * std::cos(7 * y) + 0.05 * noise(random);
    map.push_back(land ? -1e34F : static_cast<float>(sea));
  }
  return map;
}

Field field_of(std::string name, const Triples& triples) {
  Values values;
  for (const auto& triple : triples) values.insert(values.end(), triple.begin(), triple.end());
  return field_of(std::move(name), {1, 1, triples.size(), 3}, values);
}

}  // namespace

std::vector<Field> solver_fields() {
  const auto [x, r] = conjugate_gradients();
  Fluid fluid;
  for (int step = 0; step < 100; ++step) fluid.step();
  return {field_of("heat", kCube, heat()), field_of("cg x", kCube, x), field_of("cg r", kCube, r),
          field_of("fluid x", fluid.positions()), field_of("fluid v", fluid.velocities())};
}

std::vector<Field> made_up_fields() {
  const Values field = turbulence();
  const std::vector<float> rounded(field.begin(), field.end());
  return {field_of("turbulence", kCube, field), field_of("turbulence, float32", kCube, rounded),
          field_of("map with land, float32", {1, 1, 721, 1440}, map_with_land())};
}

}  // namespace bench
