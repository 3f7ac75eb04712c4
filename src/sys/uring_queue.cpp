#include "sys/uring_queue.hpp"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

namespace diapause::sys {
namespace {

constexpr unsigned kLargestDepth = 256;
// One request carries at most 2 GiB less a page; larger buffers continue as short writes do.
constexpr std::size_t kLargestRequestBytes = std::size_t{1} << 30;

struct Write {
  int fd;
  ByteView rest;
  std::uint64_t offset;
  bool done;
  int result;
};

class UringQueue final : public WriteQueue {
 public:
  // Takes the ring over.
  UringQueue(const io_uring& ring, unsigned depth) : ring_(ring), depth_(depth) {}
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  ~UringQueue() override {
    // The kernel reads the buffers until their writes are done, and the caller may free them after this.
    while (in_flight_ > 0 && reap_one() == 0) continue;
    ::io_uring_queue_exit(&ring_);
  }

  std::int64_t submit(int fd, ByteView data, std::uint64_t offset) override {
    while (in_flight_ >= depth_) {
      if (const int error = reap_one(); error != 0) return error;
    }
    const std::int64_t ticket = next_ticket_++;
    Write& write = writes_[ticket] = {fd, data, offset, data.empty(), 0};
    if (!write.done) start(ticket, write);
    return ticket;
  }

  int wait(std::int64_t ticket) override {
    const auto found = writes_.find(ticket);
    if (found == writes_.end()) return -EINVAL;
    while (!found->second.done) {
      if (const int error = reap_one(); error != 0) return error;
    }
    const int result = found->second.result;
    writes_.erase(found);
    return result;
  }

 private:
  void finish(Write& write, int result) {
    write.done = true;
    write.result = result;
  }

  void start(std::int64_t ticket, Write& write) {
    // The ring has room: every entry taken is submitted at once, and at most depth_ are in flight.
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) return finish(write, -EBUSY);
    const auto count = static_cast<unsigned>(std::min(write.rest.size(), kLargestRequestBytes));
    ::io_uring_prep_write(entry, write.fd, write.rest.data(), count, write.offset);
    ::io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(ticket));
    int submitted = 0;
    do submitted = ::io_uring_submit(&ring_);
    while (submitted == -EINTR);
    // An entry that was refused stays in the ring and goes out with the next one or with the wait for it.
    ++in_flight_;
  }

  // Waits for one completion and either finishes its write or sends off the rest of it.
  int reap_one() {
    io_uring_cqe* completion = nullptr;
    int error = 0;
    do error = ::io_uring_submit_and_wait(&ring_, 1);
    while (error == -EINTR || error == -EAGAIN);
    if (error < 0) return error;
    error = ::io_uring_peek_cqe(&ring_, &completion);
    if (error == -EAGAIN) return 0;
    if (error != 0) return error;
    const auto ticket = static_cast<std::int64_t>(::io_uring_cqe_get_data64(completion));
    const int count = completion->res;
    ::io_uring_cqe_seen(&ring_, completion);
    --in_flight_;
    advance(ticket, count);
    return 0;
  }

  void advance(std::int64_t ticket, int count) {
    Write& write = writes_.at(ticket);
    // Some file systems cannot start the write without blocking and say so; the plain call may block.
    if (count == -EAGAIN) count = write_blocking(write);
    if (count == -EINTR) return start(ticket, write);
    if (count < 0) return finish(write, count);
    if (count == 0) return finish(write, -EIO);
    write.rest = write.rest.subspan(static_cast<std::size_t>(count));
    write.offset += static_cast<std::uint64_t>(count);
    if (write.rest.empty()) return finish(write, 0);
    start(ticket, write);
  }

  static int write_blocking(const Write& write) {
    const std::size_t count = std::min(write.rest.size(), kLargestRequestBytes);
    const ssize_t written = ::pwrite(write.fd, write.rest.data(), count, static_cast<off_t>(write.offset));
    return written < 0 ? -errno : static_cast<int>(written);
  }

  io_uring ring_;
  unsigned depth_;
  unsigned in_flight_ = 0;
  std::unordered_map<std::int64_t, Write> writes_;
  std::int64_t next_ticket_ = 0;
};

}  // namespace

std::unique_ptr<WriteQueue> make_uring_queue(unsigned depth) {
  const unsigned entries = std::clamp(depth, 1U, kLargestDepth);
  io_uring ring;
  if (::io_uring_queue_init(entries, &ring, 0) != 0) return nullptr;
  return std::make_unique<UringQueue>(ring, entries);
}

}  // namespace diapause::sys
