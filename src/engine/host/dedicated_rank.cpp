#include "engine/host/dedicated_rank.hpp"

#include "engine/host/host.hpp"

namespace diapause::engine {
namespace {

Status take_over(sys::StopSignals* signals, const std::vector<std::string>& names) {
  std::vector<int> numbers;
  for (const std::string& name : names) {
    if (const auto number = sys::signal_number(name)) numbers.push_back(*number);
  }
  return signals == nullptr || numbers.empty() ? Status{} : signals->take(numbers);
}

}  // namespace

Result<std::unique_ptr<DedicatedRank>> DedicatedRank::open(
    const Context& whole, const Context& rank, std::unique_ptr<comm::Comm> workers,
    std::unique_ptr<sys::StopSignals> signals) {
  std::unique_ptr<DedicatedRank> dedicated(new DedicatedRank(rank.log));
  Status taken = take_over(signals.get(), rank.settings.deadline.signals);
  dedicated->signals_ = std::move(signals);
  const bool is_needed = rank.settings.global_mode == config::GlobalMode::staged;
  Status opened;
  if (is_needed) opened = dedicated->open_worker(whole, rank, std::move(workers));
  if (!opened && !can_go_inline(opened.error())) return fail(opened.error());
  // The other ranks do the work themselves.
  if (!opened || !is_needed) DIAPAUSE_TRY(agree(whole, {}));
  if (!taken) rank.log(Severity::warning, taken.error().message);
  return dedicated;
}

Status DedicatedRank::open_worker(const Context& whole, const Context& rank,
                                  std::unique_ptr<comm::Comm> workers) {
  const auto log = [this](Severity severity, const std::string& text) { log_(severity, text); };
  auto worker = NodeWorker::open(rank, std::move(workers), log, ledger_);
  DIAPAUSE_TRY(
      announce(whole, worker ? Status{} : fail(worker.error()), worker ? worker->get() : nullptr));
  ledger_.open((*worker)->context());
  (*worker)->listen([this] { return signals_ ? signals_->received() : 0; });
  // Matches the other ranks, which agree on whether they found their mailboxes.
  DIAPAUSE_TRY(agree(whole, {}));
  (*worker)->conceal_mailbox();
  worker_ = std::move(*worker);
  return {};
}

DedicatedRank::~DedicatedRank() {
  try {
    serve();
  } catch (...) {
    // The reason is lack of memory, before or after all jobs. The other ranks learn it from what
    // they wait for.
  }
}

void DedicatedRank::serve() {
  if (!worker_) return;
  worker_->serve();
  ledger_.write_last(worker_->context());
  worker_.reset();
}

}  // namespace diapause::engine
