#include "comm/meeting_place.hpp"

#include <algorithm>
#include <cstring>

#include "sys/futex.hpp"

namespace diapause::comm {

std::uint64_t MeetingPlace::bytes(std::uint32_t processes) {
  return round_up(sizeof(Shared), alignof(Place)) + processes * sizeof(Place);
}

MeetingPlace::MeetingPlace(std::byte* memory, std::uint32_t place, std::uint32_t processes)
    : place_(place),
      processes_(processes),
      shared_(reinterpret_cast<Shared*>(memory)),
      places_(reinterpret_cast<Place*>(memory + round_up(sizeof(Shared), alignof(Place)))) {}

bool MeetingPlace::arrive(ByteView mine, std::size_t values) {
  ++meeting_;
  Place& place = places_[place_];
  place.length[meeting_ % 2] = mine.size();
  if (mine.size() <= kMostBytes)
    std::copy(mine.begin(), mine.end(), place.left[meeting_ % 2].begin());
  if (shared_->arrived.fetch_add(1) + 1 != processes_) return false;
  find_least(values);
  shared_->arrived.store(0);  // nobody arrives again before this meeting is over
  shared_->gathered.store(meeting_);
  wake(For::all_here);
  return true;
}

void MeetingPlace::find_least(std::size_t values) {
  auto& least = shared_->result;
  std::fill_n(least.begin(), values, UINT64_MAX);
  for (std::uint32_t place = 0; place < processes_; ++place) {
    const auto& left = places_[place].left[meeting_ % 2];
    for (std::size_t i = 0; i < values; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, left.data() + i * sizeof value, sizeof value);
      least[i] = std::min(least[i], value);
    }
  }
}

void MeetingPlace::release(bool succeeded) {
  shared_->failed.store(succeeded ? 0 : 1);
  shared_->over.store(meeting_);
  wake(For::end);
}

std::optional<ByteView> MeetingPlace::left_by(std::uint32_t place) const {
  const Place& of = places_[place];
  const std::uint64_t length = of.length[meeting_ % 2];
  if (length > kMostBytes) return std::nullopt;
  return ByteView(of.left[meeting_ % 2]).first(length);
}

void MeetingPlace::announce(ByteView data) {
  Announcement& to = shared_->announcements[announced_ % kAnnouncements];
  std::copy(data.begin(), data.end(), to.data.begin());
  ++announced_;
  to.number.store(announced_);
  shared_->announced.store(announced_);
  wake(For::announcement);
}

bool MeetingPlace::hear(MutableBytes data) {
  const Announcement& from = shared_->announcements[announced_ % kAnnouncements];
  if (from.number.load() != announced_ + 1) return false;
  std::copy_n(from.data.begin(), data.size(), data.begin());
  ++announced_;
  return true;
}

std::atomic<std::uint32_t>& MeetingPlace::atomic_of(For what) const {
  if (what == For::all_here) return shared_->gathered;
  return what == For::end ? shared_->over : shared_->announced;
}

std::uint32_t MeetingPlace::word(For what) const { return atomic_of(what).load(); }

void MeetingPlace::sleep(For what, std::uint32_t seen, double at_most_s) {
  ++shared_->sleepers;
  sys::wait_while(atomic_of(what), seen, at_most_s);
  --shared_->sleepers;
}

// The kernel compares the word once more before it lets a thread sleep, and a thread is counted
// before that. So if none is counted after the word has changed, none will sleep.
void MeetingPlace::wake(For what) {
  if (shared_->sleepers.load() != 0) sys::wake_all(atomic_of(what));
}

}  // namespace diapause::comm
