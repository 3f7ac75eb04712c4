// The host that runs the node engine in the rank's own calls.
#include <deque>

#include "engine/host/host.hpp"

namespace diapause::engine {
namespace {

class InlineHost : public Host {
 public:
  explicit InlineHost(std::unique_ptr<NodeEngine> engine) : engine_(std::move(engine)) {}

  std::uint32_t incarnation() const override { return engine_->incarnation(); }
  std::uint32_t other_rank_count() const override { return engine_->other_rank_count(); }
  Worker worker() const override { return Worker::call; }

  Result<store::Slot> acquire(config::TierKind kind, std::uint64_t bytes, store::SlotUse) override {
    DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots, engine_->acquire(kind, {bytes}));
    return std::move(slots.front());
  }

  std::optional<store::Slot> try_acquire(config::TierKind kind, std::uint64_t bytes) override {
    return engine_->try_acquire(kind, bytes);
  }

  governor::PhaseGuard begin_capture(std::uint64_t bytes) override {
    return engine_->begin_capture(bytes);
  }
  std::uint64_t next_number() const override { return count_; }
  std::uint64_t submit(Captures captures) override {
    engine_->revive_tiers();
    const auto told = [](std::uint32_t) {};
    Outcome outcome = captures.completes ? engine_->complete(std::move(captures), told)
                                         : engine_->checkpoint(std::move(captures), told);
    Progress progress{true, outcome.manifest.levels, std::move(outcome.result), 0};
    progress.bytes_total = outcome.manifest.protected_bytes();
    done_.push_back(std::move(progress));
    if (done_.size() > 64) done_.pop_front();
    return count_++;
  }
  Progress progress(std::uint64_t number) override {
    return done_[done_.size() - (count_ - number)];
  }
  void wait(std::uint64_t, std::uint32_t, double) override {}

  void add(std::span<const Phase> phases) override {
    for (const Phase& phase : phases) engine_->add(phase);
  }
  void end_period() override { engine_->end_period(); }

  Status finish() override { return engine_->finish(); }

  void reject(const format::VersionId& version) override { engine_->reject(version); }
  void pin(std::optional<format::VersionId> version) override { engine_->pin(version); }

 private:
  std::unique_ptr<NodeEngine> engine_;
  std::deque<Progress> done_;
  std::uint64_t count_ = 0;
};

}  // namespace

Result<std::unique_ptr<Host>> open_inline_host(Context& context, LedgerWriter& ledger) {
  DIAPAUSE_TRY_ASSIGN(std::unique_ptr<NodeEngine> engine, NodeEngine::open(context, ledger));
  return std::make_unique<InlineHost>(std::move(engine));
}

}  // namespace diapause::engine
