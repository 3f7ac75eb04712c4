// Waiting for a number in memory to change, also between processes that share the memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace diapause::sys {

// Returns when `word` was woken up, was not `seen` to begin with, or the time is over; also now and then for no reason.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t seen, double at_most_s);

// Wakes everybody who waits for `word`; to be called after it was changed.
void wake_all(std::atomic<std::uint32_t>& word);

}  // namespace diapause::sys
