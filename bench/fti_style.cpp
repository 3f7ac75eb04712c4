// Checkpoints by FTI's interface against the same by Diapause's own.
//
//   mpirun -n N fti_style LEVEL RUNS MIB CONFIGURATION
//
// CONFIGURATION is a file of FTI. The environment configures both alike, each rank a node of its
// own, with all work in the call. The pairs are the seconds that a checkpoint of MIB per rank
// takes, from barrier to barrier.
#include "diapause/diapause_mpi.h"
#include "fti.h"
#include "measure.hpp"

namespace {

using bench::give_up;
using bench::Pairs;
using bench::WarmMemory;

constexpr int kWarmUps = 3;

double seconds_together(const auto& action) {
  MPI_Barrier(MPI_COMM_WORLD);
  return bench::seconds_of([&] {
    action();
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

void must(int status, const char* what) {
  if (status != DIAPAUSE_OK) give_up(std::string(what) + ": " + diapause_last_error());
}

Pairs measure(int level, int runs, std::size_t bytes, const char* configuration) {
  const WarmMemory data(bytes);
  diapause_t* own = nullptr;
  must(diapause_mpi_open(MPI_COMM_WORLD, "own", nullptr, &own), "diapause_mpi_open");
  must(diapause_protect(own, "data", data.data(), bytes, DIAPAUSE_UINT8), "diapause_protect");
  if (FTI_Init(configuration, MPI_COMM_WORLD) != FTI_SCES) give_up("FTI_Init has failed");
  if (FTI_Protect(0, data.data(), static_cast<long>(bytes), FTI_CHAR) != FTI_SCES)
    give_up("FTI_Protect has failed");

  int id = 0;
  const auto by_fti = [&] {
    if (FTI_Checkpoint(++id, level) != FTI_DONE) give_up("FTI_Checkpoint has failed");
  };
  std::uint64_t version = 0;
  const auto by_own = [&] {
    must(diapause_checkpoint(own, ++version, level, nullptr), "diapause_checkpoint");
  };

  Pairs pairs;
  for (int i = -kWarmUps; i < runs; ++i) {
    // The side that comes second finds warmer caches. Each side has that advantage in one half of
    // the pairs.
    const bool is_fti_first = i % 2 == 0;
    double fti_s = is_fti_first ? seconds_together(by_fti) : 0;
    const double own_s = seconds_together(by_own);
    if (!is_fti_first) fti_s = seconds_together(by_fti);
    if (i >= 0) pairs.emplace_back(fti_s, own_s);
  }
  FTI_Finalize();
  diapause_close(own);
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) give_up("usage: fti_style LEVEL RUNS MIB CONFIGURATION");
  const Pairs pairs = measure(std::atoi(argv[1]), std::atoi(argv[2]),
                              std::strtoul(argv[3], nullptr, 10) << 20, argv[4]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) bench::print_json(pairs);
  MPI_Finalize();
}
