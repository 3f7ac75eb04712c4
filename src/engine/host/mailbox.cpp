#include "engine/host/mailbox.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "sys/futex.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

static_assert(std::is_trivially_copyable_v<Message>);

// A waiting thread checks again after this time even if nobody wakes it, because the other process
// may have died.
constexpr double kLookAgain_s = 1;

// Two calls of a program begin further apart than that.
constexpr double kSameTime_s = 1e-6;

}  // namespace

std::uint64_t Mailbox::bytes(std::uint32_t rank_count) {
  return round_up(sizeof(Shared), alignof(Box)) + rank_count * sizeof(Box);
}

Result<Mailbox> Mailbox::create(const sys::Directory& directory, std::uint32_t rank_count) {
  // The file is made anew, because a process of an earlier run may still map the old one.
  DIAPAUSE_TRY(directory.remove_file(kFileName));
  DIAPAUSE_TRY_ASSIGN(sys::File file, directory.create_file(kFileName));
  Mailbox mailbox(std::move(file), rank_count);
  DIAPAUSE_TRY(mailbox.file_.truncate(bytes(rank_count)));
  DIAPAUSE_TRY(mailbox.file_.reserve(bytes(rank_count)));
  DIAPAUSE_TRY(mailbox.map());
  return mailbox;
}

Result<Mailbox> Mailbox::open(const sys::Directory& directory, std::uint32_t rank_count) {
  DIAPAUSE_TRY_ASSIGN(sys::File file, directory.open_file(kFileName, sys::Access::read_write));
  Mailbox mailbox(std::move(file), rank_count);
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, mailbox.file_.size());
  if (size != bytes(rank_count))
    return fail(Code::corrupt, mailbox.file_.path() + " is not this job's");
  DIAPAUSE_TRY(mailbox.map());
  return mailbox;
}

Status Mailbox::map() {
  int error = 0;
  std::byte* base = nullptr;
  do {
    error = 0;
    base = file_.kernel().map_shared(file_.fd(), bytes(rank_count_), &error);
  } while (base == nullptr && error == EINTR);
  if (base == nullptr) return fail(os_error("mapping " + file_.path(), error));
  // A fresh file is all zeros, which is the initial state of everything in it.
  shared_ = reinterpret_cast<Shared*>(base);
  boxes_ = reinterpret_cast<Box*>(base + round_up(sizeof(Shared), alignof(Box)));
  return {};
}

Mailbox::Mailbox(Mailbox&& other) noexcept
    : file_(std::move(other.file_)),
      rank_count_(other.rank_count_),
      shared_(std::exchange(other.shared_, nullptr)),
      boxes_(std::exchange(other.boxes_, nullptr)) {}

Mailbox::~Mailbox() {
  if (shared_ != nullptr)
    file_.kernel().unmap(reinterpret_cast<std::byte*>(shared_), bytes(rank_count_));
}

void Mailbox::tell() {
  ++shared_->news;
  sys::wake_all(shared_->news);
}

std::uint64_t Mailbox::post(std::uint32_t place, const Message& message) {
  Box& box = boxes_[place];
  const std::uint64_t number = box.posted.load();
  while (true) {
    const std::uint32_t seen = shared_->news.load();
    if (number < shared_->finished.load() + kRequests) break;
    sys::wait_while(shared_->news, seen, kLookAgain_s);
  }
  box.messages[number % kRequests] = message;
  box.posted.store(number + 1);
  // Only the last rank wakes the other process, which would go back to sleep before.
  std::atomic<std::uint32_t>& posts = shared_->posts[number % kRequests];
  if (posts.fetch_add(1) + 1 != rank_count_) return number;
  posts.store(0);
  ++shared_->bell;
  sys::wake_all(shared_->bell);
  return number;
}

void Mailbox::expect_capture(double called_s) {
  shared_->called_s[shared_->calls.load() % kRequests].store(called_s);
  ++shared_->calls;
}

void Mailbox::expect_no_capture() {
  const std::uint64_t last = --shared_->calls;
  shared_->called_s[last % kRequests].store(0);
}

std::optional<double> Mailbox::first_call_after(double time_s) const {
  std::optional<double> first_s;
  for (const std::atomic<double>& called : shared_->called_s) {
    const double called_s = called.load();
    // Times that were computed in two ways differ by a rounding.
    if (called_s > time_s + kSameTime_s) first_s = std::min(first_s.value_or(called_s), called_s);
  }
  return first_s;
}

std::vector<Message> Mailbox::take(std::uint64_t number, const std::function<void()>& meanwhile) {
  std::vector<Message> messages;
  for (std::uint32_t place = 0; place < rank_count_; ++place) {
    while (true) {
      const std::uint32_t seen = shared_->bell.load();
      if (boxes_[place].posted.load() > number) break;
      meanwhile();
      sys::wait_while(shared_->bell, seen, kLookAgain_s);
    }
    messages.push_back(boxes_[place].messages[number % kRequests]);
  }
  return messages;
}

void Mailbox::begin(std::uint64_t number) {
  Entry& result = entry(number);
  result.number_plus_1.store(0);
  result.levels.store(0);
  result.is_done.store(0);
  result.number_plus_1.store(number + 1);
}

void Mailbox::reached(std::uint64_t number, std::uint32_t levels) {
  entry(number).levels.store(levels);
  tell();
}

void Mailbox::finish(std::uint64_t number, const Progress& progress) {
  Entry& result = entry(number);
  result.bytes_total = progress.bytes_total;
  result.seconds = progress.seconds;
  result.code = progress.result ? 0 : static_cast<std::int32_t>(progress.result.error().code);
  put_text(result.text, progress.result ? "" : progress.result.error().message);
  result.levels.store(progress.levels);
  result.is_done.store(1);
  shared_->finished.store(number + 1);
  tell();
}

Progress Mailbox::progress(std::uint64_t number) const {
  Progress progress;
  const Entry& result = entry(number);
  if (result.number_plus_1.load() != number + 1) return progress;  // it has not begun
  progress.is_done = result.is_done.load() != 0;
  progress.levels = result.levels.load();
  if (!progress.is_done) return progress;
  progress.bytes_total = result.bytes_total;
  progress.seconds = result.seconds;
  if (result.code != 0)
    progress.result = fail(static_cast<Code>(result.code), get_text(result.text));
  return progress;
}

void Mailbox::wait(std::uint64_t number, std::uint32_t levels, double at_most_s) const {
  const double end_s = sys::monotonic_s() + at_most_s;
  while (true) {
    const std::uint32_t seen = shared_->news.load();
    const Progress now = progress(number);
    if (now.is_done || (now.levels & levels) != 0) return;
    const double left_s = end_s - sys::monotonic_s();
    if (left_s <= 0) return;
    sys::wait_while(shared_->news, seen, std::min(left_s, kLookAgain_s));
  }
}

}  // namespace diapause::engine
