// Memory in which the processes of a node exchange small values, without messages. A meeting is a
// round in which every process leaves something and sees what the others have left; an announcement
// is a value of the first process.
//
// No function waits: the caller looks again until what it waits for is so, and may sleep in
// between.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::comm {

class MeetingPlace {
 public:
  // These are the limits of what a process leaves or announces.
  static constexpr std::size_t kMostBytes = 256;
  static constexpr std::size_t kMostValues = kMostBytes / sizeof(std::uint64_t);

  static std::uint64_t bytes(std::uint32_t processes);
  // `memory` has at least bytes() and is all zeros at first. `place` counts from 0. All processes
  // make the same calls of arrive() and announcement in the same order.
  MeetingPlace(std::byte* memory, std::uint32_t place, std::uint32_t processes);

  std::uint32_t place() const { return place_; }
  std::uint32_t processes() const { return processes_; }

  // ---- a meeting: arrive() by all, release() by one of them, then all read
  // Leaves `mine`; if that is too long, its length only. Returns whether this process was the last
  // to arrive. The result holds the least of the first `values` of all then.
  bool arrive(ByteView mine, std::size_t values);
  bool are_all_here() const { return shared_->gathered.load() == meeting_; }
  std::span<std::uint64_t> result(std::size_t count) {
    return std::span(shared_->result).first(count);
  }
  // The last process to arrive calls this or, once all are here, another one.
  void release(bool succeeded);
  bool is_over() const { return shared_->over.load() == meeting_; }
  bool has_succeeded() const { return shared_->failed.load() == 0; }
  // Returns what a process has left, and nullopt if it was too long. It is valid until this process
  // arrives at the next meeting.
  std::optional<ByteView> left_by(std::uint32_t place) const;

  // ---- an announcement by the process in place 0, who does not wait for the others
  // Returns whether all have to meet before the next announcement, because its memory may still be
  // read.
  bool needs_meeting() const { return announced_ % kAnnouncements == 0; }
  void announce(ByteView data);
  // Returns whether the next announcement was there, and is in `data` now.
  bool hear(MutableBytes data);

  // ---- waiting
  // Returns a value that changes when one of the above does. A process that has read it before it
  // looked may sleep while it is the same.
  enum class For { all_here, end, announcement };
  std::uint32_t word(For what) const;
  void sleep(For what, std::uint32_t seen, double at_most_s);

 private:
  static constexpr std::uint32_t kAnnouncements = 16;

  struct Announcement {
    std::atomic<std::uint32_t> number;
    std::array<std::byte, kMostBytes> data;
  };
  struct Shared {
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> gathered;   // number of the last meeting at which all have arrived
    std::atomic<std::uint32_t> over;       // number of the last one that is over
    std::atomic<std::uint32_t> announced;  // number of the last announcement
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> failed;
    std::array<std::uint64_t, kMostValues> result;
    std::array<Announcement, kAnnouncements> announcements;
  };
  // A process leaves things at even and at odd meetings in different places, because others may
  // still read what it has left at the meeting before.
  struct alignas(64) Place {
    std::array<std::uint64_t, 2> length;
    std::array<std::array<std::byte, kMostBytes>, 2> left;
  };

  void find_least(std::size_t values);
  std::atomic<std::uint32_t>& atomic_of(For what) const;
  void wake(For what);

  std::uint32_t place_;
  std::uint32_t processes_;
  Shared* shared_;
  Place* places_;
  std::uint32_t meeting_ = 0;
  std::uint32_t announced_ = 0;
};

}  // namespace diapause::comm
