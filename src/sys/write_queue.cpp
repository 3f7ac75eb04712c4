#include <cerrno>
#include <unordered_map>

#include "sys/kernel.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

// Writes at once, so nothing is ever in flight; results wait here for whoever asks.
class PwriteQueue final : public WriteQueue {
 public:
  explicit PwriteQueue(Kernel& kernel) : kernel_(kernel) {}

  std::int64_t submit(int fd, ByteView data, std::uint64_t offset) override {
    results_[next_ticket_] = write_all(fd, data, offset);
    return next_ticket_++;
  }

  int wait(std::int64_t ticket) override {
    const auto found = results_.find(ticket);
    if (found == results_.end()) return -EINVAL;
    const int result = found->second;
    results_.erase(found);
    return result;
  }

 private:
  int write_all(int fd, ByteView data, std::uint64_t offset) {
    while (!data.empty()) {
      const std::int64_t count = uninterrupted([&] { return kernel_.pwrite(fd, data, offset); });
      if (count < 0) return static_cast<int>(count);
      if (count == 0) return -EIO;
      data = data.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return 0;
  }

  Kernel& kernel_;
  std::unordered_map<std::int64_t, int> results_;
  std::int64_t next_ticket_ = 0;
};

}  // namespace

std::unique_ptr<WriteQueue> Kernel::write_queue(unsigned) { return std::make_unique<PwriteQueue>(*this); }

}  // namespace diapause::sys
