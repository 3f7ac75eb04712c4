// Checkpoints and restarts of one process against a memcpy and against the disk read and written
// directly.
//
//   one_process memory|local|restart|mapped|flush|app|app_floor|direct|files|ledger|auto RUNS MIB
//   DIRECTORY
//
// DIRECTORY is where the raw file goes: the disk of the local tier. Tiers are configured by the
// environment.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "diapause/diapause.h"
#include "measure.hpp"

namespace {

using bench::give_up;
using bench::Pairs;
using bench::seconds_of;
using bench::WarmMemory;

constexpr int kWarmUps = 3;
constexpr std::size_t kBlockBytes = std::size_t{16} << 20;

void must(int status, const char* what) {
  if (status != DIAPAUSE_OK) give_up(std::string(what) + ": " + diapause_last_error());
}

// An instance that protects one region.
class Instance {
 public:
  explicit Instance(const WarmMemory& memory, const char* name = "bench",
                    diapause_type type = DIAPAUSE_UINT8) {
    const std::size_t element = type == DIAPAUSE_FLOAT64 ? sizeof(double) : 1;
    must(diapause_open(name, nullptr, &instance_), "diapause_open");
    must(diapause_protect(instance_, "data", memory.data(), memory.size() / element, type),
         "diapause_protect");
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() { diapause_close(instance_); }

  // Returns the seconds for which it blocked.
  double checkpoint(int level = DIAPAUSE_L1) {
    diapause_checkpoint_info info;
    must(diapause_checkpoint(instance_, ++version_, level, &info), "diapause_checkpoint");
    return info.blocked_s;
  }
  // Measures until the last version holds. The other function does the same with files that
  // `write(directory)` writes.
  template <class Write>
  void checkpoint_files(Write write) {
    const char* directory = nullptr;
    must(diapause_files(instance_, &directory), "diapause_files");
    write(std::string(directory));
    must(diapause_checkpoint_files(instance_, ++version_, DIAPAUSE_L4, 1, nullptr),
         "diapause_checkpoint_files");
  }
  void wait(int level) { must(diapause_wait(instance_, version_, level, 600), "diapause_wait"); }
  bool is_in_flight() {
    diapause_progress progress;
    must(diapause_poll(instance_, version_, &progress), "diapause_poll");
    return progress.in_flight != 0;
  }
  // Maps a version. The program may go on when it returns, and the check goes on behind it.
  const void* map() {
    void* data = nullptr;
    must(diapause_restart_mapped(instance_, DIAPAUSE_NEWEST, DIAPAUSE_CHECK_BEHIND, nullptr),
         "diapause_restart_mapped");
    must(diapause_map(instance_, "data", &data), "diapause_map");
    must(diapause_restart_end(instance_), "diapause_restart_end");
    return data;
  }
  void scrub_wait() { must(diapause_scrub_wait(instance_), "diapause_scrub_wait"); }
  void restart() {
    must(diapause_restart(instance_, DIAPAUSE_NEWEST, nullptr), "diapause_restart");
  }

 private:
  diapause_t* instance_ = nullptr;
  std::uint64_t version_ = 0;
};

// The raw limit of the disk: a preallocated file that was written before, whole blocks, no page
// cache.
class RawFile {
 public:
  RawFile(const std::string& directory, const WarmMemory& memory) : memory_(memory) {
    path_ = directory + "/raw";
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd_ < 0) give_up(path_ + " cannot be opened with O_DIRECT: no disk");
    if (::posix_fallocate(fd_, 0, static_cast<off_t>(memory.size())) != 0)
      give_up("no room for " + path_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  void write() {
    for_each_block([&](char* data, std::size_t length, off_t offset) {
      return ::pwrite(fd_, data, length, offset);
    });
    if (::fsync(fd_) != 0) give_up("cannot sync " + path_);
  }
  void read() {
    for_each_block([&](char* data, std::size_t length, off_t offset) {
      return ::pread(fd_, data, length, offset);
    });
  }

 private:
  template <class Transfer>
  void for_each_block(Transfer transfer) {
    for (std::size_t offset = 0; offset < memory_.size(); offset += kBlockBytes) {
      const std::size_t length = std::min(kBlockBytes, memory_.size() - offset);
      const ssize_t moved = transfer(memory_.data() + offset, length, static_cast<off_t>(offset));
      if (moved != static_cast<ssize_t>(length)) give_up("a short transfer of " + path_);
    }
  }

  const WarmMemory& memory_;
  std::string path_;
  int fd_ = -1;
};

struct Options {
  int runs;
  std::size_t bytes;
  std::string directory;
};

Pairs measure_memory(const Options& options) {
  const WarmMemory data(options.bytes);
  const WarmMemory copy(options.bytes);
  Instance instance(data);
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    const double copied_s =
        seconds_of([&] { std::memcpy(copy.data(), data.data(), options.bytes); });
    const double blocked_s = instance.checkpoint();
    instance.wait(DIAPAUSE_L1);
    if (i >= 0) pairs.emplace_back(blocked_s, copied_s);
  }
  return pairs;
}

// Seconds of `ours`, a function of an instance that makes its data durable, against the disk.
template <class Ours>
Pairs measure_against_raw(const Options& options, Ours ours) {
  const WarmMemory data(options.bytes);
  RawFile raw(options.directory, data);
  Instance instance(data);
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    const double written_s = seconds_of([&] { raw.write(); });
    const double our_s = ours(instance);
    if (i >= 0) pairs.emplace_back(our_s, written_s);
  }
  return pairs;
}

Pairs measure_local(const Options& options) {
  return measure_against_raw(options, [](Instance& instance) { return instance.checkpoint(); });
}

// From the end of the capture until level 4 holds.
Pairs measure_flush(const Options& options) {
  return measure_against_raw(options, [](Instance& instance) {
    instance.checkpoint(DIAPAUSE_L4);
    return seconds_of([&] { instance.wait(DIAPAUSE_L4); });
  });
}

// A computation that the memory limits. It sweeps a three-point stencil from one array to another.
class Stencil {
 public:
  // Seconds of a sweep, as the mean of those made while `goes_on` says so; at least one is made.
  template <class GoesOn>
  double sweep_while(GoesOn goes_on) {
    int sweeps = 0;
    const double all_s = seconds_of([&] {
      do {
        for (std::size_t i = 1; i + 1 < kCells; ++i)
          next_[i] = (now_[i - 1] + now_[i] + now_[i + 1]) / 3;
        std::swap(now_, next_);
        ++sweeps;
      } while (goes_on(sweeps));
    });
    return all_s / sweeps;
  }

 private:
  static constexpr std::size_t kCells = std::size_t{8} << 20;
  std::vector<double> now_ = std::vector<double>(kCells, 1.0), next_ = now_;
};

constexpr int kSweepsAlone = 40;

// Measures what a program loses while a version is flushed behind it.
Pairs measure_app(const Options& options) {
  const WarmMemory data(options.bytes);
  Instance instance(data);
  Stencil stencil;
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    const double alone_s = stencil.sweep_while([](int sweeps) { return sweeps < kSweepsAlone; });
    instance.checkpoint(DIAPAUSE_L4);
    const double beside_s = stencil.sweep_while([&](int) { return instance.is_in_flight(); });
    if (i >= 0) pairs.emplace_back(beside_s, alone_s);
  }
  return pairs;
}

// The processor that the thread of an instance would be on.
void go_where_instances_go() {
  const char* const cpu = std::getenv("DIAPAUSE_ASYNC_CPU");
  if (cpu == nullptr) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(std::atoi(cpu)), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) give_up("the raw writer cannot be pinned");
}

// Measures what it loses beside nothing but the writes.
Pairs measure_app_floor(const Options& options) {
  const WarmMemory data(options.bytes);
  RawFile raw(options.directory, data);
  Stencil stencil;
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    const double alone_s = stencil.sweep_while([](int sweeps) { return sweeps < kSweepsAlone; });
    std::atomic<bool> writing = true;
    std::thread writer([&] {
      go_where_instances_go();
      raw.write();
      writing = false;
    });
    const double beside_s = stencil.sweep_while([&](int) { return writing.load(); });
    writer.join();
    if (i >= 0) pairs.emplace_back(beside_s, alone_s);
  }
  return pairs;
}

// Measures for how long a checkpoint of level 4 in the background blocks, against one that writes
// straight to the global tier.
Pairs measure_against_direct(const Options& options) {
  const WarmMemory data(options.bytes);
  Instance in_background(data, "background");
  ::setenv("DIAPAUSE_ASYNC_MODE", "off", 1);
  ::setenv("DIAPAUSE_GLOBAL_MODE", "direct", 1);
  Instance direct(data, "direct");
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    const double direct_s = direct.checkpoint(DIAPAUSE_L4);
    const double blocked_s = in_background.checkpoint(DIAPAUSE_L4);
    in_background.wait(DIAPAUSE_L4);
    if (i >= 0) pairs.emplace_back(blocked_s, direct_s);
  }
  return pairs;
}

// Returns the median of a few checkpoints of all bytes, without an account of energy.
double seconds_of_checkpoint(const Options& options) {
  constexpr int kTaken = 9;
  const WarmMemory data(options.bytes);
  Instance instance(data, "all");
  for (int i = 0; i < kWarmUps; ++i) instance.checkpoint();
  std::vector<double> taken_s(kTaken);
  for (double& one_s : taken_s) one_s = instance.checkpoint();
  std::nth_element(taken_s.begin(), taken_s.begin() + kTaken / 2, taken_s.end());
  return taken_s[kTaken / 2];
}

// Busy until what a checkpoint has left to be done behind it is done.
double checkpoint_alone(Instance& instance) {
  const double seconds = instance.checkpoint();
  for (const double end_s = bench::now_s() + 0.005; bench::now_s() < end_s;) continue;
  return seconds;
}

// The cost of an account of energy does not depend on the bytes of a checkpoint. But the place
// where the bytes of an instance happen to lie makes checkpoints of many bytes faster or slower by
// some percent. So it is measured on few bytes, with two instances of which one has an account, so
// far apart that every checkpoint of theirs is settled. A third instance warms the caches; whatever
// still is left to whoever comes first, each of the two has in one half of a pair. The pairs are
// the seconds of a checkpoint of all bytes with what the account costs, and without.
Pairs measure_ledger(const Options& options) {
  constexpr auto kApart = std::chrono::milliseconds(1050);
  ::setenv("DIAPAUSE_ENERGY_METERS", "off", 1);
  const double all_s = seconds_of_checkpoint(options);
  const WarmMemory data(64 * 1024);
  Instance warm_up(data, "warm-up");
  Instance without(data, "without");
  ::setenv("DIAPAUSE_ENERGY_METERS", "auto", 1);
  Instance with(data, "with");
  Pairs pairs;
  for (int i = -1; i < options.runs; ++i) {
    double more_s = 0;
    for (const bool is_first : {true, false}) {
      std::this_thread::sleep_for(kApart);
      checkpoint_alone(warm_up);
      if (is_first) more_s += checkpoint_alone(with);
      more_s -= checkpoint_alone(without);
      if (!is_first) more_s += checkpoint_alone(with);
    }
    if (i >= 0) pairs.emplace_back(all_s + more_s / 2, all_s);
  }
  return pairs;
}

// Doubles of a smooth field with noise in their last bits, as a solver leaves them.
void fill_like_a_solver(const WarmMemory& data) {
  std::uint64_t noise = 1;
  for (std::size_t i = 0; i + sizeof(double) <= data.size(); i += sizeof(double)) {
    noise = noise * 6364136223846793005U + 1442695040888963407U;
    const double value = 300 + 20 * std::sin(1e-6 * static_cast<double>(i)) +
                         1e-9 * static_cast<double>(noise >> 54);
    std::memcpy(data.data() + i, &value, sizeof value);
  }
}

// Measures until a version of level 4 is durable with codec.method = "auto", against the fastest of
// the other methods.
Pairs measure_auto(const Options& options) {
  const WarmMemory data(options.bytes);
  fill_like_a_solver(data);
  std::vector<std::unique_ptr<Instance>> instances;
  for (const char* const method : {"none", "lz4", "zstd", "auto"}) {
    ::setenv("DIAPAUSE_CODEC_METHOD", method, 1);
    instances.push_back(std::make_unique<Instance>(data, method, DIAPAUSE_FLOAT64));
  }
  Pairs pairs;
  for (int i = -kWarmUps; i < options.runs; ++i) {
    std::vector<double> durable_s;
    for (const auto& instance : instances) {
      durable_s.push_back(seconds_of([&] {
        instance->checkpoint(DIAPAUSE_L4);
        instance->wait(DIAPAUSE_L4);
      }));
    }
    if (i >= 0)
      pairs.emplace_back(durable_s.back(),
                         *std::min_element(durable_s.begin(), durable_s.end() - 1));
  }
  return pairs;
}

constexpr int kFiles = 4;

// Writes `data` as a few files of equal size, as a program does that has its own format.
void write_files(const std::string& directory, const WarmMemory& data, bool synced) {
  const std::size_t length = data.size() / kFiles;
  for (int number = 0; number < kFiles; ++number) {
    const std::string path = directory + "/" + std::to_string(number);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) give_up(path + " cannot be written");
    for (std::size_t done = 0; done < length;) {
      const ssize_t written = ::write(fd, data.data() + number * length + done, length - done);
      if (written <= 0) give_up("no room for " + path);
      done += static_cast<std::size_t>(written);
    }
    if (synced && ::fsync(fd) != 0) give_up("cannot sync " + path);
    ::close(fd);
  }
}

// A version of files until level 4 holds, against the same files written to the disk of the global
// tier and synced there.
Pairs measure_files(const Options& options) {
  const WarmMemory data(options.bytes);
  const WarmMemory state(4096);
  const std::string beside = options.directory + "/raw";
  Instance instance(state);
  Pairs pairs;
  for (int i = -1; i < options.runs; ++i) {
    std::filesystem::create_directories(beside);
    const double written_s = seconds_of([&] { write_files(beside, data, true); });
    // Diapause's files go as well when they are captured: the next ones find as much memory that is
    // warm.
    std::filesystem::remove_all(beside);
    const double durable_s = seconds_of([&] {
      instance.checkpoint_files(
          [&](const std::string& directory) { write_files(directory, data, false); });
      instance.wait(DIAPAUSE_L4);
    });
    if (i >= 0) pairs.emplace_back(durable_s, written_s);
  }
  return pairs;
}

// Drops what the page cache holds of the files below `directory`.
void make_cold(const std::string& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

Pairs measure_restart(const Options& options) {
  const WarmMemory data(options.bytes);
  const WarmMemory expected(options.bytes);
  RawFile raw(options.directory, data);
  raw.write();
  Instance(data).checkpoint();
  Pairs pairs;
  for (int i = 0; i < options.runs; ++i) {
    make_cold(options.directory);
    const double read_s = seconds_of([&] { raw.read(); });
    std::memset(data.data(), 0, options.bytes);
    Instance instance(data);
    const double restarted_s = seconds_of([&] { instance.restart(); });
    if (std::memcmp(data.data(), expected.data(), options.bytes) != 0)
      give_up("the restart gave something else");
    pairs.emplace_back(restarted_s, read_s);
  }
  return pairs;
}

// A mapped restart against one that reads and copies everything before the program goes on.
Pairs measure_mapped(const Options& options) {
  const WarmMemory data(options.bytes);
  const WarmMemory expected(options.bytes);
  Instance(data).checkpoint();
  Pairs pairs;
  for (int i = 0; i < options.runs; ++i) {
    make_cold(options.directory);
    double restarted_s = 0;
    {
      Instance instance(data);
      restarted_s = seconds_of([&] { instance.restart(); });
    }
    make_cold(options.directory);
    Instance instance(data);
    const void* mapped = nullptr;
    const double mapped_s = seconds_of([&] { mapped = instance.map(); });
    instance.scrub_wait();
    if (std::memcmp(mapped, expected.data(), options.bytes) != 0)
      give_up("the mapped restart gave something else");
    pairs.emplace_back(mapped_s, restarted_s);
  }
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Pairs (*)(const Options&)> measures = {
      {"memory", measure_memory},
      {"local", measure_local},
      {"flush", measure_flush},
      {"app", measure_app},
      {"app_floor", measure_app_floor},
      {"direct", measure_against_direct},
      {"mapped", measure_mapped},
      {"restart", measure_restart},
      {"files", measure_files},
      {"ledger", measure_ledger},
      {"auto", measure_auto}};
  if (argc != 5 || !measures.contains(argv[1])) {
    give_up(
        "usage: one_process "
        "memory|local|restart|mapped|flush|app|app_floor|direct|files|ledger|auto RUNS MIB "
        "DIRECTORY");
  }
  bench::print_json(measures.at(argv[1])(
      {std::atoi(argv[2]), std::strtoul(argv[3], nullptr, 10) << 20, argv[4]}));
}
