// The Reed-Solomon arithmetic of a checkpoint against ISA-L's own on the same bytes, without any
// message.
//
//   parity RUNS MIB K M
//
// ISA-L gets the piece size that suits it best, found here; ours is what
// src/engine/node/levels/parity.cpp uses.
#include <isa-l/erasure_code.h>

#include <algorithm>

#include "measure.hpp"
#include "redundancy/reed_solomon.hpp"

namespace {

using bench::give_up;
using bench::seconds_of;
using bench::WarmMemory;
using diapause::redundancy::ReedSolomon;

constexpr std::size_t kOurPieceBytes = std::size_t{1} << 20;

struct Job {
  std::uint32_t k, m;
  std::size_t chunk;  // in bytes
  const WarmMemory& data;
  const WarmMemory& parity;
};

// Encodes as the member of a group does that computes a row, piece by piece.
void encode_ours(const ReedSolomon& code, const Job& job) {
  std::vector<const std::byte*> sources(job.k);
  std::vector<std::byte*> targets(job.m);
  for (std::size_t offset = 0; offset < job.chunk; offset += kOurPieceBytes) {
    const std::size_t length = std::min(kOurPieceBytes, job.chunk - offset);
    for (std::uint32_t i = 0; i < job.k; ++i) {
      sources[i] = reinterpret_cast<const std::byte*>(job.data.data() + i * job.chunk + offset);
    }
    for (std::uint32_t j = 0; j < job.m; ++j) {
      targets[j] = reinterpret_cast<std::byte*>(job.parity.data() + j * job.chunk + offset);
    }
    code.encode(sources, targets, length);
  }
}

class IsaL {
 public:
  explicit IsaL(const Job& job) : job_(job), tables_(32 * job.k * job.m) {
    const int k = static_cast<int>(job.k);
    const int m = static_cast<int>(job.m);
    std::vector<unsigned char> matrix((job.k + job.m) * job.k);
    gf_gen_cauchy1_matrix(matrix.data(), k + m, k);
    ec_init_tables(k, m, matrix.data() + job.k * job.k, tables_.data());
  }

  void encode(std::size_t piece) {
    std::vector<unsigned char*> sources(job_.k);
    std::vector<unsigned char*> targets(job_.m);
    for (std::size_t offset = 0; offset < job_.chunk; offset += piece) {
      const std::size_t length = std::min(piece, job_.chunk - offset);
      for (std::uint32_t i = 0; i < job_.k; ++i) sources[i] = place(job_.data, i, offset);
      for (std::uint32_t j = 0; j < job_.m; ++j) targets[j] = place(job_.parity, j, offset);
      ec_encode_data(static_cast<int>(length), static_cast<int>(job_.k), static_cast<int>(job_.m),
                     tables_.data(), sources.data(), targets.data());
    }
  }

  std::size_t best_piece() {
    std::size_t best = 0;
    double best_s = 0;
    for (std::size_t piece = 16 * 1024; piece <= 16 * 1024 * 1024; piece *= 4) {
      double least_s = seconds_of([&] { encode(piece); });
      for (int i = 0; i < 2; ++i) least_s = std::min(least_s, seconds_of([&] { encode(piece); }));
      if (best != 0 && least_s >= best_s) continue;
      best = piece;
      best_s = least_s;
    }
    return best;
  }

 private:
  unsigned char* place(const WarmMemory& memory, std::size_t chunk, std::size_t offset) const {
    return reinterpret_cast<unsigned char*>(memory.data() + chunk * job_.chunk + offset);
  }

  const Job& job_;
  std::vector<unsigned char> tables_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) give_up("usage: parity RUNS MIB K M");
  const int runs = std::atoi(argv[1]);
  const auto k = static_cast<std::uint32_t>(std::atoi(argv[3]));
  const auto m = static_cast<std::uint32_t>(std::atoi(argv[4]));
  const std::size_t chunk = (std::strtoul(argv[2], nullptr, 10) << 20) / k;
  const WarmMemory data(chunk * k);
  const WarmMemory parity(chunk * m);
  const WarmMemory expected(chunk * m);
  const auto code = ReedSolomon::create(k, m);
  if (!code) give_up(code.error().message);
  const Job ours{k, m, chunk, data, parity};
  const Job raw{k, m, chunk, data, expected};
  IsaL isal(raw);
  const std::size_t piece = isal.best_piece();
  bench::Pairs pairs;
  for (int i = 0; i < runs; ++i) {
    const double raw_s = seconds_of([&] { isal.encode(piece); });
    const double ours_s = seconds_of([&] { encode_ours(*code, ours); });
    pairs.emplace_back(ours_s, raw_s);
  }
  if (std::memcmp(parity.data(), expected.data(), parity.size()) != 0)
    give_up("ISA-L gives another parity");
  std::fprintf(stderr, "ISA-L's best piece: %zu KiB\n", piece / 1024);
  bench::print_json(pairs);
}
