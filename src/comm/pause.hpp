// The duration of the sleeps of a call that waits for other ranks. The functions are pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace diapause::comm {

// The way in which the calls of a Comm wait: `alert` polls for what is expected soon, `patient`
// leaves the processor to other threads from the beginning.
enum class Waiting { alert, patient };

using Waited = std::chrono::nanoseconds;

// Returns how long to sleep after a wait of `waited`; 0 means to check again at once. A sleeping
// rank notices an arrival late, so each sleep is a small part of the wait so far. Alert ranks do
// not sleep at first, nor while their own `bytes` are in transfer, because MPI makes progress only
// inside calls.
constexpr Waited pause_after(Waited waited, Waiting waiting, std::uint64_t bytes = 0) {
  constexpr Waited kAlertFor = std::chrono::milliseconds(1);
  // This is slower than any network that waits would hold up.
  constexpr std::int64_t kNanosecondsPerByte = 4;
  constexpr int kPart = 16;
  constexpr Waited kShortest = std::chrono::microseconds(20);
  constexpr Waited kLongest = std::chrono::microseconds(500);
  const Waited at_once = kAlertFor + Waited(static_cast<std::int64_t>(bytes) * kNanosecondsPerByte);
  if (waiting == Waiting::alert && waited < at_once) return Waited::zero();
  return std::clamp(waited / kPart, kShortest, kLongest);
}

// Returns whether a rank that has waited so long, and does not sleep yet, leaves the processor to
// other threads between two looks. A thread of low priority, such as one of ours in the background,
// may then keep it for milliseconds, which is far longer than what is expected soon.
constexpr bool gives_way_after(Waited waited) { return waited >= std::chrono::microseconds(50); }

// Returns how long a rank sleeps that others will wake, and that must let MPI make progress now and
// then; 0 means to check again at once. `crowd` is the number of ranks for each processor: where
// there are several, a rank that keeps a processor busy keeps another one from arriving, and each
// sleeps longer, so that together they need no more of it.
constexpr Waited nap_after(Waited waited, unsigned crowd) {
  constexpr Waited kAlertFor = std::chrono::milliseconds(1);
  constexpr Waited kNap = std::chrono::microseconds(500);
  return crowd <= 1 && waited < kAlertFor ? Waited::zero() : crowd * kNap;
}

}  // namespace diapause::comm
