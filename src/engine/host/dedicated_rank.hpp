// A rank that is dedicated to its node (async.mode = "rank"): it computes and protects nothing, and
// does the work behind the captures of the other ranks.
#pragma once

#include <memory>

#include "engine/host/node_worker.hpp"
#include "sys/signals.hpp"

namespace diapause::engine {

class DedicatedRank {
 public:
  // `whole` holds all ranks. `rank` is the context of a computing rank of this node, and `workers`
  // is as in NodeWorker::open(). The signals that ask the program to stop also arrive here; they
  // are handled and passed on to the computing ranks of the node. Collective over `whole`.
  static Result<std::unique_ptr<DedicatedRank>> open(const Context& whole, const Context& rank,
                                                     std::unique_ptr<comm::Comm> workers,
                                                     std::unique_ptr<sys::StopSignals> signals);
  ~DedicatedRank();  // serves, if serve() was not called before

  // Serves like NodeWorker::serve(), until all ranks of the node have closed the instance.
  void serve();
  void set_log(LogSink log) { log_ = std::move(log); }

 private:
  explicit DedicatedRank(LogSink log) : log_(std::move(log)) {}
  Status open_worker(const Context& whole, const Context& rank,
                     std::unique_ptr<comm::Comm> workers);

  LogSink log_;
  LedgerWriter ledger_;
  std::unique_ptr<sys::StopSignals> signals_;
  // It is null after serving, or if the other ranks work in their calls.
  std::unique_ptr<NodeWorker> worker_;
};

}  // namespace diapause::engine
