#include "sys/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <ctime>

namespace diapause::sys {
namespace {

// Returns the address of the four bytes, which the kernel expects.
std::uint32_t* address_of(const std::atomic<std::uint32_t>& word) {
  static_assert(sizeof word == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  return const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(&word));
}

}  // namespace

void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t seen, double at_most_s) {
  if (at_most_s <= 0) return;
  const double whole_s = std::floor(at_most_s);
  const timespec time{static_cast<time_t>(whole_s), static_cast<long>((at_most_s - whole_s) * 1e9)};
  ::syscall(SYS_futex, address_of(word), FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, address_of(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace diapause::sys
