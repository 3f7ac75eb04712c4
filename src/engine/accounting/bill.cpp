#include "engine/accounting/bill.hpp"

#include <utility>

namespace diapause::engine {

void Bill::open(Context& context) {
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

void Bill::append(Context& context, const std::string& json_object) {
  append_quietly(json_object);
  const std::lock_guard lock(mutex_);
  if (untold_) context.log(Severity::warning, *untold_);
  untold_.reset();
}

void Bill::append_quietly(const std::string& json_object) {
  const std::lock_guard lock(mutex_);
  if (!ledger_) return;
  const Status appended = ledger_->append(json_object);
  const bool was_losing_lines = std::exchange(is_losing_lines_, !appended);
  if (!appended && !was_losing_lines) untold_ = appended.error().message;
}

}  // namespace diapause::engine
