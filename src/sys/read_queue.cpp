#include <cerrno>
#include <unordered_map>

#include "sys/kernel.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

// Reads at once, so nothing is ever in flight; results wait here for whoever asks.
class PreadQueue final : public ReadQueue {
 public:
  explicit PreadQueue(Kernel& kernel) : kernel_(kernel) {}

  std::int64_t submit(int fd, MutableBytes data, std::uint64_t offset) override {
    results_[next_ticket_] = read_all(fd, data, offset);
    return next_ticket_++;
  }

  bool is_done(std::int64_t) override { return true; }

  int wait(std::int64_t ticket) override {
    const auto found = results_.find(ticket);
    if (found == results_.end()) return -EINVAL;
    const int result = found->second;
    results_.erase(found);
    return result;
  }

 private:
  int read_all(int fd, MutableBytes data, std::uint64_t offset) {
    while (!data.empty()) {
      const std::int64_t count = uninterrupted([&] { return kernel_.pread(fd, data, offset); });
      if (count < 0) return static_cast<int>(count);
      if (count == 0) return -ENODATA;
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

std::byte* Kernel::map_private(int, std::uint64_t, std::uint64_t, int* error) {
  *error = ENODEV;
  return nullptr;
}

std::unique_ptr<ReadQueue> Kernel::read_queue(unsigned) { return std::make_unique<PreadQueue>(*this); }

}  // namespace diapause::sys
