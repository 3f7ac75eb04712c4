#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "energy/ledger.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// The ledger of a job, for whichever threads of rank 0 write to it. A line that cannot be written is lost; the first of
// several in a row is logged.
class Bill {
 public:
  void open(Context& context);
  void append(Context& context, const std::string& json_object);
  // The same for threads that may not log: that is left to the next append().
  void append_quietly(const std::string& json_object);
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return ledger_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<energy::Ledger> ledger_;
  bool is_losing_lines_ = false;
  std::optional<std::string> untold_;  // why the last line was lost
};

}  // namespace diapause::engine
