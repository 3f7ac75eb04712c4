// Work on a long row of things, in several threads: each takes one run of neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::sys {

// Calls `share(begin, end)` for up to `threads` runs that together are 0 to `count`, each at least `least` long where
// there are as many, and returns the first failure in their order. `share` must not throw.
template <class Share>
Status in_shares(std::size_t count, unsigned threads, std::size_t least, const Share& share) {
  const std::size_t shares = std::clamp<std::size_t>(count / least, 1, std::max(threads, 1U));
  std::vector<Status> results(shares);
  ThreadPool(static_cast<unsigned>(shares)).run(shares, [&](std::uint64_t i) {
    results[i] = share(count * i / shares, count * (i + 1) / shares);
  });
  for (Status& result : results) {
    if (!result) return std::move(result);
  }
  return {};
}

}  // namespace diapause::sys
