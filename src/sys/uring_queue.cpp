#include "sys/uring_queue.hpp"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "sys/unseen_writers.hpp"

namespace diapause::sys {
namespace {

constexpr unsigned kLargestDepth = 256;
// One request carries at most 2 GiB less a page. Larger buffers are continued like short writes.
constexpr std::size_t kLargestRequestBytes = std::size_t{1} << 30;

enum class Direction { read, write };

struct Transfer {
  int fd;
  std::byte* at;  // not changed by a write
  std::size_t left;
  std::uint64_t offset;
  bool done;
  int result;
};

// Has the transfers in flight in one direction.
class Ring {
 public:
  // Takes ownership of the ring.
  Ring(const io_uring& ring, unsigned depth, Direction direction)
      : ring_(ring), depth_(depth), direction_(direction) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    // The kernel uses the buffers until their transfers are done, and the caller may free them
    // after this.
    while (in_flight_ > 0 && reap_one() == 0) continue;
    ::io_uring_queue_exit(&ring_);
  }

  std::int64_t submit(int fd, std::byte* at, std::size_t length, std::uint64_t offset) {
    while (in_flight_ >= depth_) {
      if (const int error = reap_one(); error != 0) return error;
    }
    const std::int64_t ticket = next_ticket_++;
    Transfer& transfer = transfers_[ticket] = {fd, at, length, offset, length == 0, 0};
    if (!transfer.done) start(ticket, transfer);
    return ticket;
  }

  int wait(std::int64_t ticket) {
    const auto found = transfers_.find(ticket);
    if (found == transfers_.end()) return -EINVAL;
    while (!found->second.done) {
      if (const int error = reap_one(); error != 0) return error;
    }
    const int result = found->second.result;
    transfers_.erase(found);
    return result;
  }

 private:
  void finish(Transfer& transfer, int result) {
    transfer.done = true;
    transfer.result = result;
  }

  void start(std::int64_t ticket, Transfer& transfer) {
    // The ring has room: every entry is submitted at once, and at most depth_ are in flight.
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) return finish(transfer, -EBUSY);
    const auto count = static_cast<unsigned>(std::min(transfer.left, kLargestRequestBytes));
    if (direction_ == Direction::read) {
      ::io_uring_prep_read(entry, transfer.fd, transfer.at, count, transfer.offset);
    } else {
      ::io_uring_prep_write(entry, transfer.fd, transfer.at, count, transfer.offset);
    }
    ::io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(ticket));
    int submitted = 0;
    do submitted = ::io_uring_submit(&ring_);
    while (submitted == -EINTR);
    // An entry that was refused stays in the ring and is submitted with the next one or by the
    // wait.
    ++in_flight_;
  }

  // Waits for one completion.
  int reap_one() {
    io_uring_cqe* completion = nullptr;
    int error = 0;
    do error = ::io_uring_submit_and_wait(&ring_, 1);
    while (error == -EINTR || error == -EAGAIN);
    if (error < 0) return error;
    error = ::io_uring_peek_cqe(&ring_, &completion);
    if (error == -EAGAIN) return 0;
    if (error != 0) return error;
    take(completion);
    return 0;
  }

  // Finishes the transfer of a completion, or submits the rest of it.
  void take(io_uring_cqe* completion) {
    const auto ticket = static_cast<std::int64_t>(::io_uring_cqe_get_data64(completion));
    const int count = completion->res;
    ::io_uring_cqe_seen(&ring_, completion);
    --in_flight_;
    advance(ticket, count);
  }

  void advance(std::int64_t ticket, int count) {
    Transfer& transfer = transfers_.at(ticket);
    // Some file systems cannot start a transfer without blocking, and some kernels cannot do it at
    // all. The plain call may block, and returns the real error.
    if (count == -EAGAIN || count == -EINVAL || count == -EOPNOTSUPP)
      count = transfer_blocking(transfer);
    if (count == -EINTR) return start(ticket, transfer);
    if (count < 0) return finish(transfer, count);
    if (count == 0) return finish(transfer, direction_ == Direction::read ? -ENODATA : -EIO);
    transfer.at += count;
    transfer.left -= static_cast<std::size_t>(count);
    transfer.offset += static_cast<std::uint64_t>(count);
    if (transfer.left == 0) return finish(transfer, 0);
    start(ticket, transfer);
  }

  int transfer_blocking(const Transfer& transfer) const {
    const std::size_t count = std::min(transfer.left, kLargestRequestBytes);
    const auto offset = static_cast<off_t>(transfer.offset);
    const ssize_t moved = direction_ == Direction::read
                              ? ::pread(transfer.fd, transfer.at, count, offset)
                              : ::pwrite(transfer.fd, transfer.at, count, offset);
    return moved < 0 ? -errno : static_cast<int>(moved);
  }

  io_uring ring_;
  unsigned depth_;
  Direction direction_;
  unsigned in_flight_ = 0;
  std::unordered_map<std::int64_t, Transfer> transfers_;
  std::int64_t next_ticket_ = 0;
};

class UringWrites final : public WriteQueue {
 public:
  UringWrites(const io_uring& ring, unsigned depth) : ring_(ring, depth, Direction::write) {}
  std::int64_t submit(int fd, ByteView data, std::uint64_t offset) override {
    return ring_.submit(fd, const_cast<std::byte*>(data.data()), data.size(), offset);
  }
  int wait(std::int64_t ticket) override { return ring_.wait(ticket); }

 private:
  Ring ring_;
};

class UringReads final : public ReadQueue {
 public:
  UringReads(const io_uring& ring, unsigned depth) : ring_(ring, depth, Direction::read) {}
  std::int64_t submit(int fd, MutableBytes data, std::uint64_t offset) override {
    return ring_.submit(fd, data.data(), data.size(), offset);
  }
  int wait(std::int64_t ticket) override { return ring_.wait(ticket); }

 private:
  Ring ring_;
};

template <class Queue>
std::unique_ptr<Queue> make_queue(unsigned depth) {
  const unsigned entries = std::clamp(depth, 1U, kLargestDepth);
  io_uring ring;
  if (::io_uring_queue_init(entries, &ring, 0) != 0) return nullptr;
  mark_own_ring(ring.ring_fd);
  return std::make_unique<Queue>(ring, entries);
}

}  // namespace

std::unique_ptr<WriteQueue> make_uring_queue(unsigned depth) {
  return make_queue<UringWrites>(depth);
}
std::unique_ptr<ReadQueue> make_uring_read_queue(unsigned depth) {
  return make_queue<UringReads>(depth);
}

}  // namespace diapause::sys
