// Notices lines that a ledger has twice, as one that was copied into itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_set>

namespace diapause::cli {

// Every line of a ledger has its time in nanoseconds, so that no two lines are equal by chance.
class RepeatedLines {
 public:
  // Returns whether the line is there for the first time.
  bool is_new(std::string_view line) {
    const bool is_new = seen_.insert(std::hash<std::string_view>{}(line)).second;
    count_ += is_new ? 0 : 1;
    return is_new;
  }
  std::size_t count() const { return count_; }

 private:
  std::unordered_set<std::size_t> seen_;
  std::size_t count_ = 0;
};

}  // namespace diapause::cli
