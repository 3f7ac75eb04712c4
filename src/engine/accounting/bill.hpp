#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "energy/ledger.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// Writes the ledger of a job, from any thread of rank 0. A line that cannot be written is lost, and
// the first of several consecutive losses is logged.
class Bill {
 public:
  void open(Context& context);
  void append(Context& context, const std::string& json_object);
  // Appends a line from a thread that must not log. A loss is logged by the next append().
  void append_quietly(const std::string& json_object);
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return ledger_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<energy::Ledger> ledger_;
  bool is_losing_lines_ = false;
  std::optional<std::string> untold_;  // why the last line was lost, if that is not logged yet
};

}  // namespace diapause::engine
