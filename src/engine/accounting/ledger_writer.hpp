#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "energy/ledger.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// Writes the ledger of a job, from any thread of rank 0. Lines that cannot be written now wait in
// memory, at most kMostWaiting of them, and are written in their order before the next line that
// can be. The first of several consecutive failures is logged.
class LedgerWriter {
 public:
  static constexpr std::size_t kMostWaiting = 1000;

  void open(const Context& context);
  void append(const Context& context, const std::string& json_object);
  // Appends a line from a thread that must not log. A failure is logged by the next append().
  void append_quietly(const std::string& json_object);
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return ledger_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<energy::Ledger> ledger_;
  std::deque<std::string> waiting_;
  bool is_failing_ = false;
  // The reason why lines have to wait, unless that is logged already.
  std::optional<std::string> untold_;
};

}  // namespace diapause::engine
