// A job on emulated nodes, as threads over one disk, and a small program with regions whose right
// content is known.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "library/engine.hpp"
#include "support/fault_kernel.hpp"
#include "support/thread_comm.hpp"
#include "support/volatile_disk.hpp"

namespace diapause::test_support {

// The program of one rank: an array whose size depends on the rank, a counter, and an empty region.
class Program {
 public:
  Program(std::uint32_t rank, std::size_t elements);
  void protect(library::Engine& engine);
  void compute(std::uint64_t version);      // fills the regions with what belongs to that version
  void scramble();                          // with what belongs to none
  bool holds(std::uint64_t version) const;  // whether they are exactly that version's
  bool is_scrambled() const;                // whether nothing was written since scramble()

 private:
  std::uint32_t rank_;
  std::vector<double> field_;
  std::uint64_t counter_ = 0;
};

struct Shape {
  std::uint32_t ranks = 8;
  std::uint32_t ranks_per_node = 2;
  std::string config;                   // lines of TOML besides the paths
  std::vector<std::string> node_names;  // by default node0, node1, ...
  std::size_t elements = 700;
  ThreadJob::Threads threads = ThreadJob::Threads::any;  // threads that may communicate
  LogSink log = [](Severity, const std::string&) {};     // called for all ranks, at the same time
  std::function<void(library::OpenRequest& request, std::uint32_t rank)>
      adjust;  // before the instance is opened
  // Puts something between a rank and its Comm.
  std::function<std::unique_ptr<comm::Comm>(std::unique_ptr<comm::Comm> comm, std::uint32_t rank)>
      watch_comm;
};

// One start of the job: runs `body` on every rank and joins. A rank whose kernel has stopped takes
// the others down. Returns the status of opening (the same on all ranks); `body` runs only if it
// was OK.
using Body = std::function<void(library::Engine& engine, Program& program, std::uint32_t rank)>;
Status run_job(sys::Kernel& kernel, const Shape& shape, const Body& body);

// Runs one more start that restarts from the newest version. The text is empty if there was no
// version, and then no rank's memory was touched.
struct Restarted {
  Status status;
  std::uint64_t version = 0;
  bool stepped_back = false;
  std::string reason;
  // Every rank holds exactly that version; after a refusal: nobody's memory was touched.
  bool intact = true;
};
// Restarts in one call, or in three steps if this process has DIAPAUSE_TEST_RESTART=steps.
Restarted restart_job(sys::Kernel& kernel, const Shape& shape,
                      std::uint64_t version = library::Engine::kNewest);

// After all nodes are lost: that version comes back from what is left on the disk.
void expect_restart_from_global(VolatileDisk& disk, const Shape& shape, std::uint64_t version);

// Says how checkpoints are taken in this process: DIAPAUSE_TEST_ASYNC is a mode of [async], or
// "relayed", which is a thread that may not communicate. Without it they are taken in the call.
bool in_background();

// A checkpoint, and with work in the background its end: what a test wants to know either way.
Status take(library::Engine& engine, std::uint64_t version, int level,
            library::CheckpointInfo& info);

// Takes one checkpoint of each (version, level) and expects success.
void checkpoint_job(sys::Kernel& kernel, const Shape& shape,
                    const std::vector<std::pair<std::uint64_t, int>>& versions);

// Returns the directory of a node (memory tier) or of the global tier, on the disk.
std::string node_directory(const VolatileDisk& disk, const std::string& node);
std::vector<std::string> files_matching(const VolatileDisk& disk, const std::string& part);

}  // namespace diapause::test_support
