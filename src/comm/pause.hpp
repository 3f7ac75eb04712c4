// How long a call that waits for other ranks sleeps between two looks at whether they have come. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace diapause::comm {

// How the calls of a Comm wait: ready for what comes soon, or leaving the processor to others from the beginning.
enum class Waiting { alert, patient };

using Waited = std::chrono::nanoseconds;

// After having waited for so long; 0: not at all, it looks again at once. Who sleeps finds out late, so a nap is a
// small part of the wait so far, and alert ranks take none at first, nor while their own `bytes` are on their way: MPI
// moves them only while somebody looks.
constexpr Waited pause_after(Waited waited, Waiting waiting, std::uint64_t bytes = 0) {
  constexpr Waited kAlertFor = std::chrono::milliseconds(1);
  constexpr std::int64_t kNanosecondsPerByte = 4;  // slower than any network that waits would hold up
  constexpr int kPart = 16;
  constexpr Waited kShortest = std::chrono::microseconds(20);
  constexpr Waited kLongest = std::chrono::microseconds(500);
  const Waited at_once = kAlertFor + Waited(static_cast<std::int64_t>(bytes) * kNanosecondsPerByte);
  if (waiting == Waiting::alert && waited < at_once) return Waited::zero();
  return std::clamp(waited / kPart, kShortest, kLongest);
}

}  // namespace diapause::comm
