// Ranks as threads of one process, so that a whole job runs inside a test, over whatever kernel the
// test gives it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/comm.hpp"

namespace diapause::test_support {

// Shared by the ranks of one job. It lives as long as its Comms.
class ThreadJob {
 public:
  // Says whether a rank may communicate in other threads than the one that got its Comm. Where it
  // may not, a call that does so fails.
  enum class Threads { any, one };

  ThreadJob(std::uint32_t ranks, std::uint32_t ranks_per_node, Threads threads = Threads::any)
      : size_(ranks), ranks_per_node_(ranks_per_node), threads_(threads) {}

  std::unique_ptr<comm::Comm> comm(std::uint32_t rank);

  // A rank died: every communication from now on fails on all others, as after the loss of a
  // process.
  void break_off();

 private:
  friend class ThreadComm;

  const std::uint32_t size_;
  const std::uint32_t ranks_per_node_;
  const Threads threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool broken_ = false;
  std::uint64_t round_ = 0;  // round of all_gather
  std::uint32_t arrived_ = 0;
  std::vector<ByteVector> gathering_;
  std::vector<ByteVector> gathered_;
  // Split off, by the round of the split.
  std::map<std::uint64_t, std::unique_ptr<ThreadJob>> parts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<ByteVector>> mail_;  // (from, to)
};

}  // namespace diapause::test_support
