#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "energy/ledger.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// Writes the ledger of a job, from any thread of rank 0. Lines that cannot be written now wait in
// memory, at most kMostWaiting of them, and are written in their order before the next line that
// can be. The first of several consecutive failures is logged. If more lines would have to wait,
// the oldest are lost: a line in their place says how many, and the log does.
class LedgerWriter {
 public:
  static constexpr std::size_t kMostWaiting = 1000;

  void open(const Context& context);
  void append(const Context& context, const std::string& json_object);
  // Appends a line from a thread that must not log. A failure is logged by the next append().
  void append_quietly(const std::string& json_object);
  // Tries once more to write what waits, and logs how many lines are lost otherwise. Called at the
  // end, when no more lines are expected.
  void write_last(const Context& context);
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return ledger_.has_value();
  }

 private:
  Status write_waiting();

  mutable std::mutex mutex_;
  std::optional<energy::Ledger> ledger_;
  std::deque<std::string> waiting_;
  std::uint64_t lost_ = 0;  // lines before them, of which no line tells yet
  bool is_failing_ = false;
  // The reason why lines have to wait, unless that is logged already.
  std::optional<std::string> untold_;
};

}  // namespace diapause::engine
