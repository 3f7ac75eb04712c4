// Waits for a number in memory to change, also between processes that share the memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace diapause::sys {

// Sleeps while `word` equals `seen`, until somebody wakes it or `at_most_s` seconds are over. May
// also return early without a reason.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t seen, double at_most_s);

// Wakes all threads that wait for `word`. Call it after changing `word`.
void wake_all(std::atomic<std::uint32_t>& word);

}  // namespace diapause::sys
