// Captures of warm memory into a slot that was used before, against one memcpy of the same bytes by
// one thread.
//
//   capture copy|protect|protect_all|rewrite|tenth RUNS MIB THREADS
//
// copy:    what a plain copy blocks
// protect: what arming copy-on-write blocks when a tenth was written to; a tenth is rewritten while
// the copy is made
// protect_all: the same of all
// rewrite: what copy-on-write costs in all, blocked and slowed down, if everything is rewritten at
// once tenth:   what an incremental capture blocks when each tenth block was written to
#include <algorithm>
#include <thread>

#include "capture/capturer.hpp"
#include "measure.hpp"
#include "sys/thread.hpp"

namespace {

using bench::give_up;
using bench::Pairs;
using bench::seconds_of;
using bench::WarmMemory;
using diapause::config::CaptureStrategy;
namespace capture = diapause::capture;
namespace format = diapause::format;

constexpr int kWarmUps = 3;
constexpr std::size_t kTenthOfBlocks = std::size_t{10} * format::kBlockBytes;

// A slot in a memory tier has shared pages that are there already, and so has this one.
class Slot {
 public:
  explicit Slot(std::size_t bytes) : bytes_(bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("no memory for a slot");
    std::memset(memory, 1, bytes);
    data_ = static_cast<std::byte*>(memory);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { ::munmap(data_, bytes_); }
  diapause::MutableBytes bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

class Program {
 public:
  Program(std::size_t bytes, CaptureStrategy strategy, unsigned threads)
      : memory_(bytes),
        copy_(bytes),
        slot_(bytes + (std::size_t{1} << 20)),
        capturer_(options(strategy, threads)) {}

  double memcpy_s() {
    return seconds_of([&] { std::memcpy(copy_.data(), memory_.data(), memory_.size()); });
  }
  double begin_s() {
    capture::CaptureRequest request;
    request.index.regions.resize(1);
    request.index.regions[0].name = "data";
    request.index.regions[0].count = memory_.size();
    request.index_offset = *format::lay_out(request.index);
    request.identity.rank_count = 1;
    request.regions = {{reinterpret_cast<const std::byte*>(memory_.data())}};
    request.to = slot_.bytes();
    request.slot_id = 1;
    return seconds_of([&] {
      if (const auto begun = capturer_.begin(std::move(request)); !begun)
        give_up(begun.error().message);
    });
  }
  void drain() {
    if (const auto drained = capturer_.drain(); !drained) give_up(drained.error().message);
  }
  // Writes to each `stride`-th block, whole.
  double rewrite_s(std::size_t stride) {
    ++value_;
    return seconds_of([&] {
      for (std::size_t at = 0; at < memory_.size(); at += stride) {
        std::memset(memory_.data() + at, value_,
                    std::min<std::size_t>(format::kBlockBytes, memory_.size() - at));
      }
    });
  }
  void must_be(diapause::policy::CaptureMethod method) const {
    const capture::RegionReport& report = capturer_.report().front();
    if (report.method != method) give_up("not captured as asked: " + report.reason);
  }

 private:
  static capture::CapturerOptions options(CaptureStrategy strategy, unsigned threads) {
    capture::CapturerOptions options;
    options.settings.strategy = strategy;
    options.settings.threads = threads;
    options.cores = diapause::sys::usable_cores();
    return options;
  }

  WarmMemory memory_;
  WarmMemory copy_;
  Slot slot_;
  capture::Capturer capturer_;
  int value_ = 0;
};

// Each `stride`-th block is rewritten before a capture, and while it is drained.
Pairs measure_blocked(Program& program, int runs, std::size_t stride) {
  Pairs pairs;
  for (int i = -kWarmUps; i < runs; ++i) {
    program.rewrite_s(stride);
    const double copied_s = program.memcpy_s();
    const double blocked_s = program.begin_s();
    std::thread drain([&] { program.drain(); });
    program.rewrite_s(stride);
    drain.join();
    if (i >= 0) pairs.emplace_back(blocked_s, copied_s);
  }
  return pairs;
}

Pairs measure_rewrite(Program& program, int runs) {
  Pairs pairs;
  for (int i = -kWarmUps; i < runs; ++i) {
    const double undisturbed_s = program.rewrite_s(format::kBlockBytes);
    const double copied_s = program.memcpy_s();
    const double blocked_s = program.begin_s();
    std::thread drain([&] { program.drain(); });
    const double rewritten_s = program.rewrite_s(format::kBlockBytes);
    drain.join();
    if (i >= 0)
      pairs.emplace_back(blocked_s + std::max(0.0, rewritten_s - undisturbed_s), copied_s);
  }
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) give_up("usage: capture copy|protect|protect_all|rewrite|tenth RUNS MIB THREADS");
  const std::string what = argv[1];
  const int runs = std::atoi(argv[2]);
  const std::size_t bytes = std::strtoul(argv[3], nullptr, 10) << 20;
  const CaptureStrategy strategy = what == "copy"    ? CaptureStrategy::copy
                                   : what == "tenth" ? CaptureStrategy::incremental
                                                     : CaptureStrategy::copy_on_write;
  Program program(bytes, strategy, static_cast<unsigned>(std::atoi(argv[4])));
  const std::size_t stride = what == "protect_all" ? format::kBlockBytes : kTenthOfBlocks;
  const Pairs pairs =
      what == "rewrite" ? measure_rewrite(program, runs) : measure_blocked(program, runs, stride);
  if (what == "copy") program.must_be(diapause::policy::CaptureMethod::copy);
  if (what == "tenth") program.must_be(diapause::policy::CaptureMethod::incremental);
  if (what == "protect" || what == "protect_all" || what == "rewrite")
    program.must_be(diapause::policy::CaptureMethod::copy_on_write);
  bench::print_json(pairs);
}
