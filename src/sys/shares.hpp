// Divides work on a long sequence among threads; each takes one contiguous share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::sys {

// Divides 0 to `count` into up to `threads` contiguous shares, each at least `least` long if
// `count` allows it, and calls `share(begin, end)` for each in a thread. Returns the first failure
// in the order of the shares. `share` must not throw.
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
