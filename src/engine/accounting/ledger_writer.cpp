#include "engine/accounting/ledger_writer.hpp"

#include <utility>

namespace diapause::engine {

void LedgerWriter::open(const Context& context) {
  store::Tier* global = context.tiers.find(config::TierKind::global);
  if (global == nullptr || context.rank() != 0) return;
  auto ledger = energy::Ledger::open(global->directory());
  if (!ledger) {
    context.log(Severity::warning, ledger.error().message);
    return;
  }
  const std::lock_guard lock(mutex_);
  ledger_.emplace(std::move(*ledger));
}

void LedgerWriter::append(const Context& context, const std::string& json_object) {
  append_quietly(json_object);
  const std::lock_guard lock(mutex_);
  if (untold_) context.log(Severity::warning, *untold_);
  untold_.reset();
}

void LedgerWriter::append_quietly(const std::string& json_object) {
  const std::lock_guard lock(mutex_);
  if (!ledger_) return;
  waiting_.push_back(json_object);
  if (waiting_.size() > kMostWaiting) waiting_.pop_front();
  Status appended;
  while (appended && !waiting_.empty()) {
    appended = ledger_->append(waiting_.front());
    if (appended) waiting_.pop_front();
  }
  const bool was_failing = std::exchange(is_failing_, !appended);
  if (!appended && !was_failing) untold_ = appended.error().message + "; its lines wait in memory";
}

}  // namespace diapause::engine
