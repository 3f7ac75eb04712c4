#include "engine/accounting/ledger_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/accounting/ledger_lines.hpp"

namespace diapause::engine {
namespace {

std::string lost_text(std::uint64_t lines) {
  return fmt::format("{} lines of {} could not be written in time, and are lost", lines,
                     energy::Ledger::kFileName);
}

}  // namespace

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
  if (waiting_.size() > kMostWaiting) {
    waiting_.pop_front();
    ++lost_;
  }
  const std::uint64_t lost = lost_;
  const Status appended = write_waiting();
  if (lost_ < lost) untold_ = lost_text(lost);
  const bool was_failing = std::exchange(is_failing_, !appended);
  if (!appended && !was_failing) untold_ = appended.error().message + "; its lines wait in memory";
}

void LedgerWriter::write_last(const Context& context) {
  const std::lock_guard lock(mutex_);
  if (!ledger_) return;
  (void)write_waiting();
  if (const std::uint64_t lost = lost_ + waiting_.size(); lost > 0)
    context.log(Severity::warning, lost_text(lost));
}

Status LedgerWriter::write_waiting() {
  if (lost_ > 0) {
    DIAPAUSE_TRY(ledger_->append(lost_line(lost_)));
    lost_ = 0;
  }
  while (!waiting_.empty()) {
    DIAPAUSE_TRY(ledger_->append(waiting_.front()));
    waiting_.pop_front();
  }
  return {};
}

}  // namespace diapause::engine
