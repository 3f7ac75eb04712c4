// A rank that is set aside for its node (async.mode = "rank"): it computes nothing, protects nothing, and does what
// comes behind the captures of the other ranks.
#pragma once

#include <memory>

#include "engine/host/node_worker.hpp"
#include "sys/signals.hpp"

namespace diapause::engine {

class DedicatedRank {
 public:
  // `whole` holds all ranks; `rank` is the context of a rank of this node that computes, and `workers` as in
  // NodeWorker::open. The signals that ask the program to stop are taken over, because they come to this rank too, and
  // passed on to the ranks of the node that compute. Collective over `whole`.
  static Result<std::unique_ptr<DedicatedRank>> open(Context& whole, const Context& rank,
                                                     std::unique_ptr<comm::Comm> workers,
                                                     std::unique_ptr<sys::StopSignals> signals);
  ~DedicatedRank();  // serves, if nobody had it serve before

  // As NodeWorker::serve(), until all ranks of the node have closed the instance.
  void serve();
  void set_log(LogSink log) { log_ = std::move(log); }

 private:
  explicit DedicatedRank(LogSink log) : log_(std::move(log)) {}
  Status open_worker(Context& whole, const Context& rank, std::unique_ptr<comm::Comm> workers);

  LogSink log_;
  Bill bill_;
  std::unique_ptr<sys::StopSignals> signals_;
  std::unique_ptr<NodeWorker> worker_;  // null when it has served, or if the other ranks work in their calls
};

}  // namespace diapause::engine
