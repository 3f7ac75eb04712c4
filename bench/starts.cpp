// Measures what a program meets when it starts, loses a node, and runs for a while, with work in
// the background, as by default.
//
//   mpirun -n N starts loss|first|memory|redundancy|memory_restart|many|many_restart|ranks RUNS MIB
//                      MEMORY
//
// loss: restarts of level 3 of MIB per rank, until the program goes on: after the loss of one
// node, and without a loss. A node is a directory of MEMORY, the memory tier, that rank 0 removes.
// first: seconds that the first checkpoint of a start blocks, after five seconds of program, and
// that the fifth does.
// memory: bytes in MEMORY after ten checkpoints of levels 1 and 4 in turn, and the bytes that are
// protected; redundancy the same of levels 2 and 3.
// memory_restart: seconds of restarts from level 1, and of a memcpy of the same bytes by as many
// threads.
// many: seconds that a checkpoint of level 1 blocks whose regions have 1 KiB each, and a
// millisecond; many_restart the same of a restart.
// ranks: seconds that a checkpoint of level 1 blocks a rank, the mean of all ranks, and the
// seconds from the arrival of the last rank at a barrier until a rank has copied as many bytes,
// also the mean.
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "diapause/diapause_mpi.h"
#include "measure.hpp"

namespace {

namespace fs = std::filesystem;
using bench::give_up;
using bench::now_s;
using bench::Pairs;
using bench::WarmMemory;

struct Setting {
  int runs = 0;
  std::size_t bytes = 0;
  fs::path memory;
};

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

double greatest(double mine) {
  double all = mine;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

void must(int status, const char* what) {
  if (status != DIAPAUSE_OK) give_up(std::string(what) + ": " + diapause_last_error());
}

class Start {
 public:
  explicit Start(const WarmMemory& memory) {
    must(diapause_mpi_open(MPI_COMM_WORLD, "bench", nullptr, &instance_), "diapause_mpi_open");
    must(diapause_protect(instance_, "data", memory.data(), memory.size(), DIAPAUSE_UINT8),
         "diapause_protect");
  }
  // Protects the same memory in regions of so many bytes.
  Start(const WarmMemory& memory, std::size_t region_bytes) {
    must(diapause_mpi_open(MPI_COMM_WORLD, "bench", nullptr, &instance_), "diapause_mpi_open");
    for (std::size_t at = 0; at < memory.size(); at += region_bytes) {
      const std::string name = "variable" + std::to_string(at / region_bytes);
      must(diapause_protect(instance_, name.c_str(), memory.data() + at, region_bytes,
                            DIAPAUSE_UINT8),
           "protect");
    }
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start() { diapause_close(instance_); }

  // Returns the seconds for which this rank was blocked, and waits then until the level holds.
  double checkpoint_of_rank(std::uint64_t version, int level) {
    diapause_checkpoint_info info;
    must(diapause_checkpoint(instance_, version, level, &info), "diapause_checkpoint");
    must(diapause_wait(instance_, version, level, 600), "diapause_wait");
    return info.blocked_s;
  }
  // Returns the seconds for which the slowest rank was blocked.
  double checkpoint(std::uint64_t version, int level) {
    return greatest(checkpoint_of_rank(version, level));
  }

  double restart() {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = now_s();
    must(diapause_restart(instance_, DIAPAUSE_NEWEST, nullptr), "diapause_restart");
    return greatest(now_s() - start_s);
  }
  void restart_from_nothing() {
    if (diapause_restart(instance_, DIAPAUSE_NEWEST, nullptr) != DIAPAUSE_ERR_NOT_FOUND)
      give_up("there is something");
  }
  void wait(std::uint64_t version, int level) {
    must(diapause_wait(instance_, version, level, 600), "diapause_wait");
  }

  // A program that works, and asks in every step.
  void work(double seconds) {
    const double end_s = now_s() + seconds;
    double sum = 0;
    bool goes_on = true;
    while (goes_on) {
      for (int i = 0; i < 1'000'000; ++i) sum += 1.0 / (1 + i + sum);
      must(diapause_snapshot(instance_, 1'000'000, nullptr), "diapause_snapshot");
      int mine = now_s() < end_s;
      MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
      goes_on = mine != 0;
    }
    kept_ = sum;
  }
  void finish() { must(diapause_finish(std::exchange(instance_, nullptr)), "diapause_finish"); }

 private:
  diapause_t* instance_ = nullptr;
  volatile double kept_ = 0;
};

// Removes the directory of a node in the memory tier: <memory>/<job>/<node>.
void lose_node(const fs::path& memory, const std::string& node) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_of_world() == 0) {
    for (const fs::directory_entry& job : fs::directory_iterator(memory)) {
      for (const fs::directory_entry& place : fs::directory_iterator(job)) {
        if (place.path().filename().string() == node) fs::remove_all(place);
      }
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

Pairs measure_loss(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  Start(data).checkpoint(1, DIAPAUSE_L3);
  Pairs pairs;
  for (int i = -1; i < setting.runs; ++i) {
    const double plain_s = Start(data).restart();
    lose_node(setting.memory, "node1");
    Start after(data);
    const double lost_s = after.restart();
    after.wait(1, DIAPAUSE_L3);
    if (i >= 0) pairs.emplace_back(lost_s, plain_s);
  }
  return pairs;
}

unsigned copying_threads() {
  const char* const threads = std::getenv("DIAPAUSE_CAPTURE_THREADS");
  return threads == nullptr ? 1 : static_cast<unsigned>(std::atoi(threads));
}

// Each thread copies one contiguous part.
void copy_by_threads(const WarmMemory& to, const WarmMemory& from) {
  const std::size_t threads = copying_threads();
  const auto copy_part = [&](std::size_t i) {
    const std::size_t begin = from.size() * i / threads;
    std::memcpy(to.data() + begin, from.data() + begin, from.size() * (i + 1) / threads - begin);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(copy_part, i);
  copy_part(0);
  for (std::thread& other : others) other.join();
}

Pairs measure_memory_restart(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  const WarmMemory expected(setting.bytes);
  Start(data).checkpoint(1, DIAPAUSE_L1);
  Pairs pairs;
  for (int i = -1; i < setting.runs; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double copied_s = greatest(bench::seconds_of([&] { copy_by_threads(data, expected); }));
    std::memset(data.data(), 0, setting.bytes);
    const double restarted_s = Start(data).restart();
    if (std::memcmp(data.data(), expected.data(), setting.bytes) != 0)
      give_up("the restart gave something else");
    if (i >= 0) pairs.emplace_back(restarted_s, copied_s);
  }
  return pairs;
}

Pairs measure_first(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  Pairs pairs;
  for (int i = 0; i < setting.runs; ++i) {
    Start start(data);
    start.restart_from_nothing();
    std::vector<double> blocked_s;
    for (std::uint64_t version = 1; version <= 5; ++version) {
      start.work(version == 1 ? 5 : 2);
      blocked_s.push_back(start.checkpoint(version, DIAPAUSE_L1));
    }
    pairs.emplace_back(blocked_s.front(), blocked_s.back());
    start.finish();
  }
  return pairs;
}

std::uint64_t bytes_in(const fs::path& directory) {
  std::uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

// After ten checkpoints of these levels in turn.
Pairs measure_memory_of(const Setting& setting, const std::vector<int>& levels) {
  const WarmMemory data(setting.bytes);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Start start(data);
  start.restart_from_nothing();
  for (std::uint64_t version = 1; version <= 10; ++version)
    start.checkpoint(version, levels[(version - 1) % levels.size()]);
  start.work(2);
  MPI_Barrier(MPI_COMM_WORLD);
  return {
      {static_cast<double>(bytes_in(setting.memory)), static_cast<double>(setting.bytes) * ranks}};
}

Pairs measure_memory(const Setting& setting) {
  return measure_memory_of(setting, {DIAPAUSE_L1, DIAPAUSE_L4});
}

Pairs measure_redundancy(const Setting& setting) {
  return measure_memory_of(setting, {DIAPAUSE_L2, DIAPAUSE_L3});
}

constexpr std::size_t kManyRegionBytes = 1024;
constexpr double kMillisecond_s = 1e-3;

Pairs measure_many(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  Start start(data, kManyRegionBytes);
  start.restart_from_nothing();
  Pairs pairs;
  for (int i = -3; i < setting.runs; ++i) {
    const double blocked_s = start.checkpoint(static_cast<std::uint64_t>(i + 4), DIAPAUSE_L1);
    if (i >= 0) pairs.emplace_back(blocked_s, kMillisecond_s);
  }
  return pairs;
}

Pairs measure_many_restart(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  Start(data, kManyRegionBytes).checkpoint(1, DIAPAUSE_L1);
  Pairs pairs;
  for (int i = -1; i < setting.runs; ++i) {
    const double restart_s = Start(data, kManyRegionBytes).restart();
    if (i >= 0) pairs.emplace_back(restart_s, kMillisecond_s);
  }
  return pairs;
}

double mean(double mine) {
  int ranks = 0;
  double sum = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks;
}

// The ranks are on one machine, and so have the same clock.
Pairs measure_ranks(const Setting& setting) {
  const WarmMemory data(setting.bytes);
  const WarmMemory copy(setting.bytes);
  Start start(data);
  start.restart_from_nothing();
  Pairs pairs;
  for (int i = -3; i < setting.runs; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double blocked_s =
        mean(start.checkpoint_of_rank(static_cast<std::uint64_t>(i + 4), DIAPAUSE_L1));
    const double last_s = greatest(now_s());
    std::memcpy(copy.data(), data.data(), setting.bytes);
    const double copied_s = mean(now_s() - last_s);
    if (i >= 0) pairs.emplace_back(blocked_s, copied_s);
  }
  return pairs;
}

Pairs measure(const std::string& what, const Setting& setting) {
  if (what == "loss") return measure_loss(setting);
  if (what == "memory_restart") return measure_memory_restart(setting);
  if (what == "redundancy") return measure_redundancy(setting);
  if (what == "first") return measure_first(setting);
  if (what == "many") return measure_many(setting);
  if (what == "ranks") return measure_ranks(setting);
  return what == "many_restart" ? measure_many_restart(setting) : measure_memory(setting);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (argc != 5) {
    give_up(
        "usage: starts loss|first|memory|redundancy|memory_restart|many|many_restart|ranks RUNS "
        "MIB MEMORY");
  }
  const std::string what = argv[1];
  const Setting setting{std::atoi(argv[2]), std::strtoul(argv[3], nullptr, 10) << 20, argv[4]};
  const Pairs pairs = measure(what, setting);
  if (rank_of_world() == 0) bench::print_json(pairs);
  MPI_Finalize();
}
