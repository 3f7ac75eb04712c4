// Checkpoints of two ranks against the messages of MPI between the same two, and of any number
// against each other.
//
//   mpirun -n N two_ranks partner|small|global|waiting RUNS MIB
//
// partner: checkpoints of level 2 of MIB per rank. The seconds of the copy alone stand in the
// ledger; the pairs printed
//          have the whole call in their place.
// small:   checkpoints of 64 KiB of level 1.
// global:  checkpoints of level 4 of MIB per rank, into two shared files and into a file per rank.
// waiting: checkpoints of level 1 of MIB of rank 0 and next to nothing of the others. The pairs are
// the processor time
//          that the last rank uses meanwhile, and how long it waits.
#include <time.h>

#include "diapause/diapause_mpi.h"
#include "measure.hpp"

namespace {

using bench::give_up;
using bench::Pairs;
using bench::WarmMemory;

constexpr int kWarmUps = 3;

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

class Instance {
 public:
  explicit Instance(const WarmMemory& memory) {
    must(diapause_mpi_open(MPI_COMM_WORLD, "bench", nullptr, &instance_), "diapause_mpi_open");
    must(diapause_protect(instance_, "data", memory.data(), memory.size(), DIAPAUSE_UINT8),
         "diapause_protect");
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() { diapause_close(instance_); }

  double checkpoint(int level) {
    diapause_checkpoint_info info;
    must(diapause_checkpoint(instance_, ++version_, level, &info), "diapause_checkpoint");
    return info.blocked_s;
  }

 private:
  static void must(int status, const char* what) {
    if (status != DIAPAUSE_OK) give_up(std::string(what) + ": " + diapause_last_error());
  }
  diapause_t* instance_ = nullptr;
  std::uint64_t version_ = 0;
};

// Between barriers, so that no rank's figure has the other's lateness in it.
template <class Action>
double together(Action action) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start_s = bench::now_s();
  action();
  MPI_Barrier(MPI_COMM_WORLD);
  return bench::now_s() - start_s;
}

Pairs measure_partner(int runs, std::size_t bytes) {
  const WarmMemory data(bytes);
  const WarmMemory received(bytes);
  const int other = 1 - rank_of_world();
  const int count = static_cast<int>(bytes);
  Instance instance(data);
  Pairs pairs;
  for (int i = -kWarmUps; i < runs; ++i) {
    const double exchanged_s = together([&] {
      MPI_Sendrecv(data.data(), count, MPI_BYTE, other, 0, received.data(), count, MPI_BYTE, other,
                   0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    const double blocked_s = instance.checkpoint(DIAPAUSE_L2);
    if (i >= 0) pairs.emplace_back(blocked_s, exchanged_s);
  }
  return pairs;
}

Pairs measure_small(int runs) {
  constexpr std::size_t kBytes = 64 * 1024;
  constexpr int kReductions = 1000;
  constexpr int kCheckpoints = 100;
  const WarmMemory data(kBytes);
  Instance instance(data);
  Pairs pairs;
  for (int i = -kWarmUps; i < runs; ++i) {
    const double reduced_s = together([&] {
      double mine = 1;
      double all = 0;
      for (int k = 0; k < kReductions; ++k)
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    });
    const double taken_s = together([&] {
      for (int k = 0; k < kCheckpoints; ++k) instance.checkpoint(DIAPAUSE_L1);
    });
    if (i >= 0) pairs.emplace_back(taken_s / kCheckpoints, reduced_s / kReductions);
  }
  return pairs;
}

double seconds_of_global(const WarmMemory& data, const char* files) {
  ::setenv("DIAPAUSE_GLOBAL_FILES", files, 1);
  Instance instance(data);
  instance.checkpoint(DIAPAUSE_L4);
  return together([&] { instance.checkpoint(DIAPAUSE_L4); });
}

Pairs measure_global(int runs, std::size_t bytes) {
  const WarmMemory data(bytes);
  Pairs pairs;
  for (int i = 0; i < runs; ++i) {
    const double shared_s = seconds_of_global(data, "2");
    pairs.emplace_back(shared_s, seconds_of_global(data, "rank"));
  }
  return pairs;
}

double processor_s() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// On the rank that waits last; it sends them to rank 0.
Pairs measure_waiting(int runs, std::size_t bytes) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const WarmMemory data(rank_of_world() == 0 ? bytes : 4096);
  Instance instance(data);
  Pairs pairs;
  for (int i = -1; i < runs; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double used[2] = {processor_s(), bench::now_s()};
    instance.checkpoint(DIAPAUSE_L1);
    used[0] = processor_s() - used[0];
    used[1] = bench::now_s() - used[1];
    MPI_Bcast(used, 2, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
    if (i >= 0) pairs.emplace_back(used[0], used[1]);
  }
  return pairs;
}

Pairs measure(const std::string& what, int runs, std::size_t bytes) {
  if (what == "partner") return measure_partner(runs, bytes);
  if (what == "waiting") return measure_waiting(runs, bytes);
  return what == "global" ? measure_global(runs, bytes) : measure_small(runs);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) give_up("usage: two_ranks partner|small|global|waiting RUNS MIB");
  const std::string what = argv[1];
  const int runs = std::atoi(argv[2]);
  const Pairs pairs = measure(what, runs, std::strtoul(argv[3], nullptr, 10) << 20);
  if (rank_of_world() == 0) bench::print_json(pairs);
  MPI_Finalize();
}
