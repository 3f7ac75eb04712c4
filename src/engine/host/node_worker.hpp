// Runs the node engine for all ranks of its node: requests arrive through the mailbox, and their
// progress is returned there. It runs where its owner calls serve(): in a thread of the node's
// first rank, or in a dedicated rank.
#pragma once

#include <memory>
#include <optional>

#include "engine/host/mailbox.hpp"

namespace diapause::engine {

// The facts about earlier checkpoints that all ranks need.
struct StoredFacts {
  std::uint32_t incarnation = 1;
  std::uint32_t other_rank_count = 0;
};

class NodeWorker {
 public:
  // Opens the worker for the node of `rank`, the context of one of the node's ranks. `comm` holds
  // the workers of all nodes in the order of the nodes. Opens the tiers and makes the mailbox.
  // `log` is called in the thread that calls open() or serve(). `ledger` must outlive the object.
  // Collective over `comm`.
  static Result<std::unique_ptr<NodeWorker>> open(const Context& rank,
                                                  std::unique_ptr<comm::Comm> comm, LogSink log,
                                                  LedgerWriter& ledger);

  StoredFacts facts() const { return {engine_->incarnation(), engine_->other_rank_count()}; }
  governor::PhaseGuard begin_capture(std::uint64_t bytes) { return engine_->begin_capture(bytes); }
  // Passes signals that only this process receives on to the ranks. `received` returns the signal
  // that asks to stop, or 0.
  void listen(std::function<int()> received) { received_ = std::move(received); }
  // Takes the mailbox its name, once all ranks have opened it: what happens to files of the tier
  // from then on does not concern the memory that they share.
  void conceal_mailbox() const;
  // Carries out the requests that the ranks post until all have told it to stop. The calling thread
  // gives way to the computing ranks, according to async.nice and async.cpu, from then on.
  void serve();
  Context& context() { return context_; }

 private:
  NodeWorker(const Context& rank, std::unique_ptr<comm::Comm> comm, LogSink log);
  Status make_mailbox();
  void pass_on_signal();
  Progress work(std::uint64_t number, const std::vector<Message>& messages);
  Progress checkpoint(std::uint64_t number, const std::vector<Message>& messages);
  void return_unused(const Message& message);
  Status borrow(const Message& message, std::vector<Image>& images);

  Context context_;
  std::unique_ptr<NodeEngine> engine_;
  std::optional<Mailbox> mailbox_;
  std::function<int()> received_ = [] { return 0; };
};

// Tells all processes of `whole` whether the workers have opened, and what they found. `opened` and
// `worker` are those of the worker in this process; pass success and nullptr where there is none.
// Collective.
Result<StoredFacts> announce(const Context& whole, const Status& opened, const NodeWorker* worker);

}  // namespace diapause::engine
