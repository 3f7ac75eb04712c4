#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "sys/process.hpp"

namespace diapause::cli {

// Shows on standard error, if that is a terminal, a line that is overwritten: how many runs are
// done, and of how many, if that is known in advance (else 0).
class RunsProgress {
 public:
  explicit RunsProgress(std::uint64_t all) : all_(all), shows_(sys::is_terminal(stderr)) {}
  ~RunsProgress() {
    if (shows_) fmt::print(stderr, "\r{:60}\r", "");
  }
  void one_more() {
    const std::uint64_t done = ++done_;
    if (!shows_) return;
    const std::lock_guard lock(mutex_);
    if (all_ == 0) {
      fmt::print(stderr, "\r{} runs", done);
    } else {
      const auto filled = static_cast<std::size_t>(40 * done / all_);
      fmt::print(stderr, "\r[{:40}] {} of {} runs", std::string(filled, '#'), done, all_);
    }
    std::fflush(stderr);
  }

 private:
  const std::uint64_t all_;
  const bool shows_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
};

}  // namespace diapause::cli
